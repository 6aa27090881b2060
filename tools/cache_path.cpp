// `jitsoftmax cache path`: the cache directories, and why each is used or refused.
#include <spdlog/fmt/fmt.h>

#include "base/files.hpp"
#include "cache.hpp"
#include "cache/trust.hpp"
#include "exit_code.hpp"
#include "print_json.hpp"

namespace jitsoftmax::tools {
namespace {

const char* name_of(cache::Standing standing) noexcept {
  switch (standing) {
    case cache::Standing::trusted:
      return "trusted";
    case cache::Standing::missing:
      return "missing";
    case cache::Standing::refused:
      return "refused";
    case cache::Standing::failed:
      break;
  }
  return "failed";
}

std::string reason_of(const CacheDirectory& directory, const cache::Verdict& verdict) {
  switch (verdict.standing) {
    case cache::Standing::trusted:
      return ownership(directory.path);
    case cache::Standing::missing:
      return directory.writable ? "is not there; the first kernel that is compiled creates it"
                                : "is not there, and is passed over";
    case cache::Standing::refused:
    case cache::Standing::failed:
      break;
  }
  return verdict.reason;
}

}  // namespace

int cache_path(const CacheRequest& request) {
  const Options options = request.engine.options();
  const std::vector<CacheDirectory> directories = cache_directories(options);
  Json json{{"directories", Json::array()}};
  std::string text;
  for (const CacheDirectory& directory : directories) {
    const cache::Verdict verdict =
        cache::directory_verdict(directory.path, base::file_system(), options.trusted_owners);
    const std::string reason = reason_of(directory, verdict);
    text +=
        fmt::format("{:<9}  {}: {}: it {}\n", kind_of(directory), directory.path, name_of(verdict.standing), reason);
    json["directories"].push_back({{"path", directory.path},
                                   {"kind", kind_of(directory)},
                                   {"standing", name_of(verdict.standing)},
                                   {"reason", reason}});
  }
  if (directories.empty() || !directories.back().writable) {
    text += "no writable directory: compiled kernels are kept in memory only\n";
  }
  if (request.json) {
    print(json);
  } else {
    fmt::print("{}", text);
  }
  return exit_code::done;
}

}  // namespace jitsoftmax::tools
