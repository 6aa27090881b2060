// `jitsoftmax cache prune`: removes entries of the writable directory.
#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <limits>
#include <optional>

#include "base/files.hpp"
#include "base/size.hpp"
#include "cache.hpp"
#include "cache/prune.hpp"
#include "cache/trust.hpp"
#include "exit_code.hpp"
#include "print_json.hpp"

namespace jitsoftmax::tools {
namespace {

std::string writable_directory(const Options& options) {
  const std::vector<CacheDirectory> directories = cache_directories(options);
  if (directories.empty() || !directories.back().writable) {
    throw Failure(exit_code::no_cache,
                  "there is no writable cache directory to remove entries from; name one with --cache-dir or "
                  "JITSOFTMAX_CACHE_DIR");
  }
  const std::string& path = directories.back().path;
  const cache::Verdict verdict = cache::directory_verdict(path, base::file_system(), options.trusted_owners);
  if (verdict.standing == cache::Standing::refused || verdict.standing == cache::Standing::failed) {
    throw Failure(exit_code::no_cache, "nothing is removed from " + path + ": it " + verdict.reason);
  }
  return path;
}

cache::Keep keep_of(const CacheRequest& request, std::int64_t now) {
  constexpr std::int64_t seconds_a_day = std::int64_t{24} * 3600;
  cache::Keep keep;
  if (request.all) keep.used_since = std::numeric_limits<std::int64_t>::max();
  if (request.older_than_days) keep.used_since = now - *request.older_than_days * seconds_a_day;
  if (request.limit) {
    const std::optional<std::int64_t> bytes = base::parse_size(*request.limit);
    if (!bytes)
      throw Failure(exit_code::usage, "--limit '" + *request.limit + "' is no size; write bytes, as 500000 or 64MB");
    keep.bytes = *bytes;
  }
  return keep;
}

void print_json(const cache::Pruned& pruned, const std::string& directory, bool dry_run, std::int64_t bytes) {
  Json json{{"directory", directory},
            {"dry_run", dry_run},
            {"removed", Json::array()},
            {"removed_bytes", bytes},
            {"temporaries", pruned.temporaries},
            {"kept", pruned.kept},
            {"kept_bytes", pruned.kept_bytes},
            {"faults", Json::array()}};
  for (const cache::Entry& entry : pruned.removed)
    json["removed"].push_back({{"path", entry.path}, {"bytes", entry.bytes}, {"last_used", utc(entry.used)}});
  for (const cache::Fault& fault : pruned.faults)
    json["faults"].push_back({{"path", fault.path}, {"reason", fault.reason}});
  print(json);
}

}  // namespace

int cache_prune(const CacheRequest& request) {
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const cache::Keep keep = keep_of(request, now);
  const Options options = request.engine.options();
  const std::string directory = writable_directory(options);
  const cache::Pruned pruned =
      cache::prune(directory, keep, request.dry_run ? cache::PruneMode::pretend : cache::PruneMode::remove, now,
                   base::file_system(), options.trusted_owners);
  std::int64_t bytes = 0;
  for (const cache::Entry& entry : pruned.removed) bytes += entry.bytes;
  for (const cache::Fault& fault : pruned.faults)
    std::fputs(fmt::format("jitsoftmax: error: {}: it {}\n", fault.path, fault.reason).c_str(), stderr);
  if (request.json) {
    print_json(pruned, directory, request.dry_run, bytes);
  } else {
    if (request.dry_run) {
      for (const cache::Entry& entry : pruned.removed) fmt::print("{}  {}\n", utc(entry.used), entry.path);
      for (const std::string& path : pruned.temporaries) fmt::print("abandoned             {}\n", path);
    }
    fmt::print("{}{} ({} bytes) and {} {}; {} ({} bytes) {} in {}\n", request.dry_run ? "dry run: " : "",
               plural(pruned.removed.size(), "entry"), bytes, plural(pruned.temporaries.size(), "abandoned temporary"),
               request.dry_run ? "would be removed" : "removed", plural(pruned.kept, "entry"), pruned.kept_bytes,
               request.dry_run ? "would stay" : "left", directory);
  }
  return pruned.faults.empty() ? exit_code::done : exit_code::incomplete;
}

}  // namespace jitsoftmax::tools
