// Code: from a specialization to its cubin, by way of the cache. Needs no driver.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "cache/key.hpp"
#include "cache/store.hpp"
#include "jit/compiler.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax {

// Threads: all functions may be called at once.
class Code {
 public:
  explicit Code(const Options& options, base::FileSystem& files = base::file_system());

  enum class Purpose {
    launch,   // for the device at hand: where this NVRTC does not know it, the nearest target that runs there
    warmup,   // for exactly this architecture, and it must end up in the cache directory
    refresh,  // as warmup, and what an NVRTC of another version made is compiled again
    tuning,   // as for a launch, but compiled whatever OnMiss says
    inspect,  // for exactly this architecture, whatever OnMiss says; kept in the cache directory if that can be done
  };
  struct Result {
    jit::Cubin cubin;
    bool compiled = false;  // else found in a cache directory:
    std::size_t place = 0;  // which of them
  };

  // Throws not_cached (OnMiss::fail), io_error (warmup and the entry cannot be stored), invalid_argument
  // (refresh of what a read-only layer has) and what Compiler::compile throws.
  [[nodiscard]] Result get(const plan::Specialization& specialization, const Arch& arch, Purpose purpose);

  // The kernels of these specializations, none of them twice, as one program: for a trial. Neither from a cache
  // directory nor kept there. Throws as get().
  [[nodiscard]] std::vector<Result> compile_together(const std::vector<plan::Specialization>& specializations,
                                                     const Arch& arch);

  // For code that was found and that the driver refuses, for this reason: from the cache directories behind
  // that one, else compiled, and kept in the entry's place unless it is a layer's. One warning an entry.
  // Throws as get().
  [[nodiscard]] Result get_instead(const Result& refused, const plan::Specialization& specialization, const Arch& arch,
                                   Purpose purpose, const std::string& reason);

  [[nodiscard]] const cache::Store& store() const noexcept { return store_; }
  [[nodiscard]] jit::Compiler& compiler() noexcept { return compiler_; }

  // Adds the counters that this room keeps.
  void report(Stats& stats) const;

 private:
  Result hit(cache::Store::Found found, std::chrono::steady_clock::time_point start);
  Result compile_and_keep(const cache::Key& key, const jit::Program& program, Purpose purpose);
  jit::Cubin compile(const jit::Program& program, Purpose purpose);
  template <class Compile>
  auto counted(std::uint64_t kernels, const Compile& compile);
  bool is_outdated(const cache::Store::Found& found, const jit::Program& program);
  [[nodiscard]] std::string how_to_add(const plan::Specialization& specialization, const jit::Program& program) const;
  [[noreturn]] void not_cached(const plan::Specialization& specialization, const jit::Program& program) const;

  OnMiss on_miss_;
  Variant variant_;
  bool deterministic_;
  cache::Store store_;
  jit::Compiler compiler_;
  std::atomic<std::uint64_t> disk_hits_{0};
  std::atomic<std::uint64_t> compiles_{0};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint64_t> compile_nanoseconds_{0};
  std::atomic<std::uint64_t> read_nanoseconds_{0};
};

}  // namespace jitsoftmax
