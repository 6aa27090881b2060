#include "tune/records.hpp"

#include <filesystem>
#include <span>
#include <utility>
#include <variant>

#include "base/file_lock.hpp"
#include "base/log.hpp"
#include "cache/key.hpp"
#include "cache/walk.hpp"

namespace jitsoftmax::tune {
namespace {

constexpr std::size_t max_reports = 64;  // of a long-lived process on broken storage

std::string records_below(const std::string& directory) { return directory + '/' + std::string(cache::records_folder); }

RecordFile ignored(std::string path, std::string reason) {
  RecordFile file;
  file.path = std::move(path);
  file.ignored = std::move(reason);
  return file;
}

RecordFile inspect(const std::string& path, const std::string& templates, base::FileSystem& files,
                   const cache::Owners& trusted) {
  const cache::TrustedFile read = cache::read_trusted(path, max_record_bytes, files, trusted);
  if (read.verdict.standing == cache::Standing::missing) return ignored(path, "is not there any more");
  RecordFile file = ignored(path, read.verdict.reason);
  if (!file.ignored.empty()) return file;
  auto origin = origin_of(read.bytes, templates);
  if (auto* refused = std::get_if<NoRecord>(&origin)) {
    file.ignored = std::move(refused->reason);
  } else {
    file.origin = std::get<RecordOrigin>(std::move(origin));
  }
  return file;
}

}  // namespace

Records::Records(RecordsOptions options, base::FileSystem& files) : options_(std::move(options)), files_(files) {}

std::optional<Record> Records::find(const RecordKey& key) noexcept {
  try {
    if (!options_.directory.empty()) {
      if (auto record = read(options_.directory, key)) return record;
    }
    for (const std::string& layer : options_.layers) {
      if (auto record = read(layer, key)) return record;
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): without a record the built-in choice is used
  }
  return std::nullopt;
}

std::optional<Record> Records::add(const RecordKey& key, const Record& record) noexcept {
  try {
    if (!options_.directory.empty()) return write(key, record);
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the record that is there stays
  }
  return std::nullopt;
}

std::optional<Record> Records::read(const std::string& directory, const RecordKey& key) {
  bool missing = false;
  if (!is_trusted(directory, missing) || !is_trusted(records_below(directory), missing)) return std::nullopt;
  const std::string path = record_path(directory, key);
  const cache::TrustedFile file = cache::read_trusted(path, max_record_bytes, files_, options_.trusted);
  if (file.verdict.standing == cache::Standing::missing) return std::nullopt;

  std::string reason = file.verdict.reason;
  if (reason.empty()) {
    auto parsed = parse(file.bytes, key, options_.templates);
    if (auto* record = std::get_if<Record>(&parsed)) return std::move(*record);
    const NoRecord& refused = std::get<NoRecord>(parsed);
    if (refused.kind == NoRecord::Kind::stale) {
      // A newer library makes all of them stale, which is one thing to say.
      report_once("jitsoftmax: tuning records in " + records_below(directory) +
                  " are not used: this library's kernels are other ones; tune again");
      return std::nullopt;
    }
    reason = refused.reason;
  }
  report_once("jitsoftmax: tuning record " + path + " is not used: it " + reason);
  return std::nullopt;
}

std::optional<Record> Records::write(const RecordKey& key, const Record& record) {
  const std::string folder = records_below(options_.directory);
  if (!ready(options_.directory) || !ready(folder)) return std::nullopt;
  // Between reading and renaming no other process may do the same: its entries would be lost. Where there
  // are no locks they may be; the file is whole all the same.
  std::error_code no_lock;
  const base::FileLock lock(folder + "/.lock", no_lock);

  const std::optional<Record> present = read(options_.directory, key);
  Record merged = present ? merge(*present, record) : record;
  const std::string text = to_text(key, options_.templates, merged);
  std::error_code error;
  const std::string temporary = files_.write_temporary(folder, std::span<const char>(text), error);
  if (error) {
    failed_to_write(error);
    return std::nullopt;
  }
  files_.rename(temporary, record_path(options_.directory, key), error);
  if (!error) return merged;
  std::error_code ignored;
  files_.remove(temporary, ignored);
  failed_to_write(error);
  return std::nullopt;
}

bool Records::is_trusted(const std::string& path, bool& missing) {
  const cache::Verdict verdict = cache::directory_verdict(path, files_, options_.trusted);
  missing = verdict.standing == cache::Standing::missing;
  if (!verdict.reason.empty()) {
    report_once("jitsoftmax: tuning records in " + path + " are not used: it " + verdict.reason);
  }
  return verdict.standing == cache::Standing::trusted;
}

bool Records::ready(const std::string& path) {
  bool missing = false;
  if (is_trusted(path, missing)) return true;
  if (!missing) return false;
  std::error_code error;
  files_.create_directories(path, error);
  if (!error && is_trusted(path, missing)) return true;
  if (error || missing) failed_to_write(error ? error : std::make_error_code(std::errc::no_such_file_or_directory));
  return false;
}

void Records::failed_to_write(const std::error_code& error) {
  report_once("jitsoftmax: tuning records cannot be written to " + records_below(options_.directory) + ": " +
              error.message() +
              "; what was found is lost with this process. Make it writable, or name another cache directory "
              "(Options::cache_dir, JITSOFTMAX_CACHE_DIR)");
}

void Records::report_once(const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (reported_.size() >= max_reports || !reported_.insert(message).second) return;
  }
  base::report(options_.log, LogLevel::warning, message);
}

std::vector<RecordFile> list_records(const std::string& directory, const std::string& templates,
                                     base::FileSystem& files, const cache::Owners& trusted) {
  const std::string folder = records_below(directory);
  for (const std::string& path : {directory, folder}) {
    cache::Verdict verdict = cache::directory_verdict(path, files, trusted);
    if (verdict.standing == cache::Standing::missing) return {};
    if (!verdict.reason.empty()) return {ignored(path, std::move(verdict.reason))};
  }
  namespace fs = std::filesystem;
  std::vector<RecordFile> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".json") found.push_back(inspect(entry->path(), templates, files, trusted));
  }
  if (error) found.push_back(ignored(folder, "cannot be listed: " + error.message()));
  return found;
}

std::vector<KeyedRecord> read_records(const std::string& directory, const std::string& templates,
                                      base::FileSystem& files, const cache::Owners& trusted) {
  std::vector<KeyedRecord> records;
  for (const RecordFile& file : list_records(directory, templates, files, trusted)) {
    if (!file.ignored.empty()) continue;
    auto parsed = parse_keyed(cache::read_trusted(file.path, max_record_bytes, files, trusted).bytes, templates);
    auto* const record = std::get_if<KeyedRecord>(&parsed);
    // Under another name nobody would look for it.
    if (record != nullptr && file.path == record_path(directory, record->key)) records.push_back(std::move(*record));
  }
  return records;
}

std::string record_path(const std::string& directory, const RecordKey& key) {
  const std::string name = describe(key);
  return records_below(directory) + '/' + cache::digest_of(std::span<const char>(name)).hex() + ".json";
}

}  // namespace jitsoftmax::tune
