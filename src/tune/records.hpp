// Records: the tuning records beside the cached kernels, one file each in `records/` below every cache
// directory.
//
// Policy, as that of the store (cache/store.hpp): what is damaged, stale, foreign or untrusted is ignored
// and reported once; an I/O error deletes nothing; storage that cannot be written is one warning.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "cache/trust.hpp"
#include "tune/record.hpp"
#include "tune/record_text.hpp"

namespace jitsoftmax::tune {

struct RecordsOptions {
  std::vector<std::string> layers = {};  // read-only cache directories
  std::string directory = {};            // the writable one; empty: none
  std::string templates = {};            // digest of the kernels
  Log log = {};
  cache::Owners trusted = {};
};

// Threads: all functions may be called at once. Processes too: none loses what another has found.
class Records {
 public:
  // Touches no file.
  explicit Records(RecordsOptions options, base::FileSystem& files = base::file_system());

  // The record in the writable directory, which is this user's own, else the first in a layer.
  [[nodiscard]] std::optional<Record> find(const RecordKey& key) noexcept;

  // Adds to what the writable directory has by now, and returns what it then holds; nothing, after one
  // report, if it could not be written.
  std::optional<Record> add(const RecordKey& key, const Record& record) noexcept;

  [[nodiscard]] const RecordsOptions& options() const noexcept { return options_; }

 private:
  std::optional<Record> read(const std::string& directory, const RecordKey& key);
  std::optional<Record> write(const RecordKey& key, const Record& record);
  bool is_trusted(const std::string& path, bool& missing);
  bool ready(const std::string& path);
  void failed_to_write(const std::error_code& error);
  void report_once(const std::string& message);

  RecordsOptions options_;
  base::FileSystem& files_;
  std::mutex mutex_;
  std::set<std::string> reported_;
};

// One file in the records of a cache directory, as people are told of it.
struct RecordFile {
  std::string path;
  RecordOrigin origin = {};
  std::string ignored = {};  // why it is not used, as a clause; empty: it is
};

// All of them in no order, decided on as Records does; none where there is no folder. A folder that is
// refused, or cannot be listed, is one RecordFile with the reason.
[[nodiscard]] std::vector<RecordFile> list_records(const std::string& directory, const std::string& templates,
                                                   base::FileSystem& files = base::file_system(),
                                                   const cache::Owners& trusted = {});

// Those of them that would be used.
[[nodiscard]] std::vector<KeyedRecord> read_records(const std::string& directory, const std::string& templates,
                                                    base::FileSystem& files = base::file_system(),
                                                    const cache::Owners& trusted = {});

// "records/0123....json" below a cache directory.
[[nodiscard]] std::string record_path(const std::string& directory, const RecordKey& key);

}  // namespace jitsoftmax::tune
