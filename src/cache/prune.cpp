#include "cache/prune.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <tuple>
#include <utility>

#include "cache/entry.hpp"

namespace jitsoftmax::cache {
namespace {

class Pruning {
 public:
  Pruning(PruneMode mode, base::FileSystem& files, const Owners& trusted)
      : mode_(mode), files_(files), trusted_(trusted) {}

  Pruned run(const std::string& directory, const Keep& keep, std::int64_t now) {
    Contents contents = walk(directory, files_, trusted_);
    result_.faults = std::move(contents.faults);
    for (const std::string& path : contents.temporaries) remove_temporary(path, now);
    std::vector<Entry> entries = entries_at(contents.entries);
    std::ranges::sort(entries, {}, [](const Entry& entry) { return std::tie(entry.used, entry.path); });
    result_.kept = entries.size();
    for (const Entry& entry : entries) result_.kept_bytes += entry.bytes;
    for (const Entry& entry : entries) {
      if (entry.used >= keep.used_since && result_.kept_bytes <= keep.bytes) break;
      if (!used_again(entry, keep.used_since)) remove_entry(entry);
    }
    return std::move(result_);
  }

 private:
  // Their first bytes are read: a name proves nothing, and what is not an entry must not count as one.
  std::vector<Entry> entries_at(const std::vector<std::string>& paths) {
    std::vector<Entry> entries;
    for (const std::string& path : paths) {
      TrustedFile file = read_trusted_start(path, entry_magic_bytes, files_, trusted_);
      if (file.verdict.standing == Standing::trusted && file.info.size <= max_entry_bytes &&
          begins_as_entry(file.bytes)) {
        entries.push_back({path, file.info.size, file.info.modified});
      } else if (file.verdict.standing == Standing::failed) {
        result_.faults.push_back({path, std::move(file.verdict.reason)});
      }
    }
    return entries;
  }

  void remove_temporary(const std::string& path, std::int64_t now) {
    std::error_code error;
    const auto info = files_.file_info(path, error);
    if (error || !distrust(info, trusted_).empty() || now - info.modified <= abandoned_seconds) return;
    if (remove(path)) result_.temporaries.push_back(path);
  }

  // Since it was listed, and recently enough to stay.
  [[nodiscard]] bool used_again(const Entry& entry, std::int64_t since) const {
    std::error_code error;
    const auto info = files_.file_info(entry.path, error);
    return !error && info.modified > entry.used && info.modified >= since;
  }

  void remove_entry(const Entry& entry) {
    if (!remove(entry.path)) return;
    --result_.kept;
    result_.kept_bytes -= entry.bytes;
    result_.removed.push_back(entry);
  }

  // True: it is gone, or would be.
  bool remove(const std::string& path) {
    if (mode_ == PruneMode::pretend) return true;
    std::error_code error;
    files_.remove(path, error);
    if (!error || error == std::errc::no_such_file_or_directory) return true;
    result_.faults.push_back({path, "cannot be removed: " + error.message()});
    return false;
  }

  PruneMode mode_;
  base::FileSystem& files_;
  const Owners& trusted_;
  Pruned result_;
};

}  // namespace

Pruned prune(const std::string& directory, const Keep& keep, PruneMode mode, std::int64_t now, base::FileSystem& files,
             const Owners& trusted) {
  return Pruning(mode, files, trusted).run(directory, keep, now);
}

void shrink(const std::string& directory, std::int64_t bytes, base::FileSystem& files, const Owners& trusted) {
  std::int64_t total = 0;
  for (const std::string& path : walk(directory, files, trusted).entries) {
    std::error_code error;
    const auto info = files.file_info(path, error);
    if (!error) total += info.size;
  }
  if (total <= bytes) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  (void)prune(directory, {.bytes = bytes}, PruneMode::remove,
              std::chrono::duration_cast<std::chrono::seconds>(now).count(), files, trusted);
}

}  // namespace jitsoftmax::cache
