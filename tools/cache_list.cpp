// `jitsoftmax cache list`: the kernels in the cache directories.
#include <spdlog/fmt/fmt.h>

#include "cache.hpp"
#include "cache/check.hpp"
#include "cache/walk.hpp"
#include "exit_code.hpp"
#include "print_json.hpp"

namespace jitsoftmax::tools {
namespace {

Json to_json(const std::string& path, const cache::Checked& checked, const CacheDirectory& directory) {
  const cache::Description& entry = *checked.entry;
  Json json{{"kernel", entry.program.name},
            {"arch", entry.program.arch.name()},
            {"nvrtc", entry.cubin.compiler},
            {"bytes", checked.info.size},
            {"last_used", nullptr},
            {"other_version", checked.condition == cache::Condition::other_version},
            {"kind", kind_of(directory)},
            {"directory", directory.path},
            {"path", path}};
  // Nobody writes down that a read-only layer was used.
  if (directory.writable) json["last_used"] = utc(checked.info.modified);
  return json;
}

std::string to_line(const Json& entry) {
  const Json& used = entry.at("last_used");
  return fmt::format("  {:<8} NVRTC {:<5} {:>9}  {:<20}  {}{}\n", entry.at("arch").get<std::string>(),
                     entry.at("nvrtc").get<std::string>(), entry.at("bytes").get<std::int64_t>(),
                     used.is_null() ? "-" : used.get<std::string>(), entry.at("kernel").get<std::string>(),
                     entry.at("other_version").get<bool>() ? " (another version's)" : "");
}

}  // namespace

int cache_list(const CacheRequest& request) {
  Json entries = Json::array();
  std::size_t unreadable = 0;
  std::string text;
  const Options options = request.engine.options();
  for (const CacheDirectory& directory : cache_directories(options)) {
    const cache::Contents contents = cache::walk(directory.path, base::file_system(), options.trusted_owners);
    unreadable += contents.faults.size();
    std::string lines;
    std::int64_t bytes = 0;
    std::size_t count = 0;
    for (const std::string& path : contents.entries) {
      const cache::Checked checked = cache::check(path, base::file_system(), options.trusted_owners);
      if (checked.condition == cache::Condition::gone) continue;
      if (!checked.entry) {
        ++unreadable;
        continue;
      }
      entries.push_back(to_json(path, checked, directory));
      lines += to_line(entries.back());
      bytes += checked.info.size;
      ++count;
    }
    text += fmt::format("{} ({}): {}, {} bytes\n", directory.path, kind_of(directory), plural(count, "entry"), bytes);
    text += lines;
  }
  if (request.json) {
    print({{"entries", std::move(entries)}, {"unreadable", unreadable}});
    return exit_code::done;
  }
  if (unreadable > 0) text += fmt::format("not shown: {}; see jitsoftmax cache verify\n", plural(unreadable, "path"));
  fmt::print("{}", text);
  return exit_code::done;
}

}  // namespace jitsoftmax::tools
