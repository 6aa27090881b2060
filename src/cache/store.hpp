// Store: the cache directories. Read-only layers in order, then at most one writable directory.
//
// Policy: a damaged, foreign or untrusted entry is a miss and is reported once; an I/O error says
// nothing about the content and never deletes anything; storage that cannot be written means that
// kernels live in memory only, with one warning. Nothing in here throws at a caller who wants a
// kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "cache/key.hpp"
#include "jit/cubin.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::cache {

struct StoreOptions {
  std::vector<std::string> layers;  // read-only
  std::string directory;            // writable; empty: none
  Log log;
};

// Threads: all functions may be called at once.
class Store {
 public:
  explicit Store(StoreOptions options, base::FileSystem& files = base::file_system());

  // The first valid entry in the order of the directories, or nothing.
  [[nodiscard]] std::optional<jit::Cubin> find(const Key& key, const jit::Program& program) noexcept;

  // Publishes an entry in the writable directory, or reports once why it cannot. True: it is there.
  bool put(const Key& key, const jit::Program& program, const jit::Cubin& cubin) noexcept;

  [[nodiscard]] std::uint64_t rejected() const noexcept { return rejected_.load(std::memory_order_relaxed); }
  [[nodiscard]] const StoreOptions& options() const noexcept { return options_; }

 private:
  StoreOptions options_;
  base::FileSystem& files_;
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<bool> write_failed_{false};  // a latch: after the first failure nothing more is written
};

// The writable directory by the rules of Options::cache_dir: the explicit option, else
// $XDG_CACHE_HOME/jitsoftmax, else ~/.cache/jitsoftmax; empty where none of them can be had
// ($XDG_CACHE_HOME relative or unset, HOME unset, relative or "/").
[[nodiscard]] std::string resolve_directory(const std::optional<std::string>& option);

// "ab/cdef....jsc" below a cache directory: sharded by the first two digits.
[[nodiscard]] std::string entry_path(const std::string& directory, const Key& key);

}  // namespace jitsoftmax::cache
