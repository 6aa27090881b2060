// What there is to say of one cache directory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/files.hpp"
#include "cache.hpp"
#include "cache/key.hpp"
#include "cache/trust.hpp"
#include "diagnosis.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::tools {
namespace {

namespace fs = std::filesystem;

void count_entry(ExaminedDirectory& directory, const std::string& path, const cache::Owners& trusted) {
  struct stat facts = {};
  if (::lstat(path.c_str(), &facts) != 0) return;  // evicted meanwhile
  ++directory.entries;
  directory.bytes += static_cast<std::uint64_t>(facts.st_size);
  const std::string reason =
      S_ISREG(facts.st_mode)
          ? cache::distrust({.mode = facts.st_mode, .owner = facts.st_uid, .size = facts.st_size}, trusted)
          : std::string(cache::not_a_file);
  if (reason.empty()) return;
  if (directory.distrusted++ == 0) directory.first_distrust = path + " " + reason;
}

// Nothing is opened.
void count_entries(ExaminedDirectory& directory, const cache::Owners& trusted) {
  cache::Contents contents = cache::walk(directory.path, base::file_system(), trusted);
  for (const std::string& path : contents.entries) count_entry(directory, path, trusted);
  directory.faults = std::move(contents.faults);
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

ExaminedDirectory examine_directory(const std::string& path, Access access, const cache::Owners& trusted) {
  ExaminedDirectory found{.path = path, .access = access};
  const cache::Verdict verdict = cache::directory_verdict(path, base::file_system(), trusted);
  found.exists = verdict.standing != cache::Standing::missing;
  found.refused = verdict.reason;
  if (!found.refused.empty()) return found;
  if (found.exists) {
    found.trusted = ownership(path);
    count_entries(found, trusted);
    found.records = tune::list_records(path, cache::digest_of(jit::templates()).hex(), base::file_system(), trusted);
  }
  if (access == Access::writable) found.unwritable = write_fault(found);
  return found;
}

}  // namespace jitsoftmax::tools
