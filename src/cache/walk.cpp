#include "cache/walk.hpp"

#include <string_view>
#include <system_error>
#include <utility>

#include "cache/store.hpp"

namespace jitsoftmax::cache {
namespace {

// The names in a directory that is trusted; else none, and a fault unless it is just not there.
std::vector<std::string> names_in(const std::string& path, base::FileSystem& files, const Owners& trusted,
                                  std::vector<Fault>& faults) {
  Verdict verdict = directory_verdict(path, files, trusted);
  if (verdict.standing == Standing::trusted) {
    std::error_code error;
    std::vector<std::string> names = files.list(path, error);
    if (!error) return names;
    if (error == std::errc::no_such_file_or_directory) return {};
    verdict.reason = "cannot be listed: " + error.message();
  }
  if (verdict.standing != Standing::missing) faults.push_back({path, std::move(verdict.reason)});
  return {};
}

std::string below(std::string directory, const std::string& name) {
  directory += '/';
  directory += name;
  return directory;
}

}  // namespace

Contents walk(const std::string& directory, base::FileSystem& files, const Owners& trusted) {
  Contents contents;
  for (const std::string& shard : names_in(directory, files, trusted, contents.faults)) {
    if (!is_shard(shard)) continue;
    const std::string path = below(directory, shard);
    for (const std::string& name : names_in(path, files, trusted, contents.faults)) {
      if (is_entry(name)) contents.entries.push_back(below(path, name));
      if (base::is_temporary(name)) contents.temporaries.push_back(below(path, name));
    }
  }
  const std::string records = below(directory, std::string(records_folder));
  std::vector<Fault> of_records;  // whoever reads records tells them
  for (const std::string& name : names_in(records, files, trusted, of_records))
    if (base::is_temporary(name)) contents.temporaries.push_back(below(records, name));
  return contents;
}

}  // namespace jitsoftmax::cache
