// Store: the cache directories. Read-only layers in order, then at most one writable directory.
//
// Policy: a damaged, foreign or untrusted entry is a miss and is reported once; an I/O error says
// nothing about the content and never deletes anything; storage that cannot be written means that
// kernels live in memory only, with one warning. Nothing in here throws at a caller who wants a
// kernel.
//
// Trusted is what nobody else could have written: the cache directory, the shard in it and the
// opened file belong to this process's user, to root or to a trusted owner, are writable by no group
// and no others, and are no symbolic links.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/files.hpp"
#include "cache/key.hpp"
#include "cache/trust.hpp"
#include "jit/cubin.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::cache {

struct StoreOptions {
  std::vector<std::string> layers = {};  // read-only
  std::string directory = {};            // writable; empty: none
  Log log = {};
  std::optional<std::int64_t> limit = {};  // bytes of entries in the writable directory; none: any number
  Owners trusted = {};
};

// Threads: all functions may be called at once.
class Store {
 public:
  // Touches no file. Relative directories are made absolute, so that the host program may change
  // its working directory.
  explicit Store(StoreOptions options, base::FileSystem& files = base::file_system());

  // The first valid entry in the order of the directories, or nothing. A hit in the writable directory
  // makes the time of the file the time of its last use, to the hour.
  [[nodiscard]] std::optional<jit::Cubin> find(const Key& key, const jit::Program& program) noexcept;

  struct Found {
    jit::Cubin cubin;
    std::size_t place = 0;  // of its directory in their order
  };
  // The same from this place on.
  [[nodiscard]] std::optional<Found> find_from(std::size_t place, const Key& key, const jit::Program& program) noexcept;

  // Counts and reports, as of a damaged entry, that the one of this place cannot be used; `reason`: as a
  // clause whose subject is the file. Nothing is removed. Returns its path.
  std::string reject(std::size_t place, const Key& key, std::string_view reason);

  // Publishes an entry in the writable directory, or reports once why it cannot. True: it is there.
  // Replaces what was there, and applies the limit, which may take away this very entry. It is not read back: a network
  // file system may not show it yet.
  bool put(const Key& key, const jit::Program& program, const jit::Cubin& cubin) noexcept;

  // Look-ups and writes that met something damaged, untrusted or refused, each counted.
  [[nodiscard]] std::uint64_t rejected() const noexcept { return rejected_.load(std::memory_order_relaxed); }
  // What was reported about the directories, each once.
  [[nodiscard]] std::vector<std::string> faults() const;
  [[nodiscard]] const StoreOptions& options() const noexcept { return options_; }

 private:
  [[nodiscard]] const std::string& directory_at(std::size_t place) const noexcept;
  std::optional<jit::Cubin> find_in(const std::string& directory, const Key& key, const jit::Program& program);
  void mark_used(const std::string& path, const base::FileSystem::Info& info);
  bool publish(const Key& key, const jit::Program& program, const jit::Cubin& cubin);
  Standing standing(const std::string& path, const std::string& directory);
  bool ready(const std::string& path);
  void reject(const std::string& path, std::string_view reason);
  void stop_writing(const std::error_code& error);
  void report_failure(std::string_view verb, const std::string& directory, const std::error_code& error,
                      std::string_view consequence);
  void report_once(std::string message);

  StoreOptions options_;
  base::FileSystem& files_;
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<bool> write_failed_{false};  // a latch: after the first failure nothing more is written
  mutable std::mutex mutex_;
  std::set<std::string> reported_;
};

// The writable directory by the rules of Options::cache_dir: the explicit option, else
// $XDG_CACHE_HOME/jitsoftmax, else ~/.cache/jitsoftmax; empty where none of them can be had
// ($XDG_CACHE_HOME relative or unset, HOME unset, relative or "/").
[[nodiscard]] std::string resolve_directory(const std::optional<std::string>& option,
                                            const std::optional<std::string>& xdg_cache_home,
                                            const std::optional<std::string>& home);

// With the environment as it is now.
[[nodiscard]] std::string resolve_directory(const std::optional<std::string>& option);

// "ab/cdef....jsc" below a cache directory: sharded by the first two digits.
[[nodiscard]] std::string entry_path(const std::string& directory, const Key& key);

// Whether a name, without its directory, is that of a shard ("ab"), or of an entry in it ("cdef....jsc").
[[nodiscard]] bool is_shard(std::string_view name) noexcept;
[[nodiscard]] bool is_entry(std::string_view name) noexcept;

}  // namespace jitsoftmax::cache
