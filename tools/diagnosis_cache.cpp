// What there is to say of one cache directory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/files.hpp"
#include "cache/key.hpp"
#include "cache/trust.hpp"
#include "diagnosis.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::tools {
namespace {

namespace fs = std::filesystem;

// Why a directory is not used, as a clause; empty: it is, or there is none.
std::string refusal(const std::string& path, bool& exists) {
  std::error_code error;
  const auto info = base::file_system().directory_info(path, error);
  exists = error != std::errc::no_such_file_or_directory;
  if (!exists) return {};
  if (const auto reason = cache::misplaced(error); !reason.empty()) return std::string(reason);
  if (error) return "cannot be used: " + error.message();
  return cache::distrust(info);
}

void distrust(ExaminedDirectory& directory, const std::string& path, const std::string& reason) {
  if (directory.distrusted++ == 0) directory.first_distrust = path + " " + reason;
}

void count_entry(ExaminedDirectory& directory, const fs::path& path, const std::string& shard_refused) {
  struct stat facts = {};
  if (::lstat(path.c_str(), &facts) != 0) return;  // evicted meanwhile
  ++directory.entries;
  directory.bytes += static_cast<std::uint64_t>(facts.st_size);
  std::string reason = shard_refused;
  if (reason.empty()) {
    reason = S_ISREG(facts.st_mode)
                 ? cache::distrust({.mode = facts.st_mode, .owner = facts.st_uid, .size = facts.st_size})
                 : std::string(cache::not_a_file);
  }
  if (!reason.empty()) distrust(directory, path, reason);
}

// Entries are in shards that two digits name; nothing is opened.
void count_entries(ExaminedDirectory& directory) {
  std::error_code error;
  for (fs::directory_iterator shard(directory.path, error), end; !error && shard != end; shard.increment(error)) {
    if (shard->path().filename().string().size() != 2) continue;
    bool exists = false;
    const std::string refused = refusal(shard->path(), exists);
    std::error_code shard_error;
    for (fs::directory_iterator entry(shard->path(), shard_error); !shard_error && entry != end;
         entry.increment(shard_error)) {
      if (entry->path().extension() == ".jsc") count_entry(directory, entry->path(), refused);
    }
  }
  if (error) directory.refused = "cannot be listed: " + error.message();
}

// Why nothing can be written there; empty: it can.
std::string write_fault(const ExaminedDirectory& directory) {
  if (directory.exists) {
    std::error_code error;
    const std::string temporary = base::file_system().write_temporary(directory.path, std::string_view("x"), error);
    if (error) return "cannot be written: " + error.message();
    base::file_system().remove(temporary, error);
    return {};
  }
  fs::path parent = fs::path(directory.path).parent_path();
  std::error_code error;
  while (!fs::exists(parent, error) && parent.has_relative_path()) parent = parent.parent_path();
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) == 0 && fs::is_directory(parent, error)) return {};
  return "cannot be created: " + parent.string() + " is not writable";
}

}  // namespace

ExaminedDirectory examine_directory(const std::string& path, Access access) {
  ExaminedDirectory found{.path = path, .access = access};
  found.refused = refusal(path, found.exists);
  if (!found.refused.empty()) return found;
  if (found.exists) {
    count_entries(found);
    found.records = tune::list_records(path, cache::digest_of(jit::templates()).hex());
  }
  if (access == Access::writable) found.unwritable = write_fault(found);
  return found;
}

}  // namespace jitsoftmax::tools
