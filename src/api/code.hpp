// Code: from a specialization to its cubin, by way of the cache. Needs no driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <jitsoftmax/engine.hpp>

#include "cache/store.hpp"
#include "jit/compiler.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax {

// Threads: all functions may be called at once.
class Code {
 public:
  explicit Code(const Options& options);

  enum class Purpose {
    launch,   // for the device at hand: where this NVRTC does not know it, the nearest target that runs there
    warmup,   // for exactly this architecture, and it must end up in the cache directory
    tuning,   // as for a launch, but compiled whatever OnMiss says
    inspect,  // for exactly this architecture, whatever OnMiss says; kept in the cache directory if that can be done
  };
  struct Result {
    jit::Cubin cubin;
    bool compiled = false;  // else found in a cache directory
  };

  // Throws not_cached (OnMiss::fail), io_error (warmup and the entry cannot be stored) and what
  // Compiler::compile throws.
  [[nodiscard]] Result get(const plan::Specialization& specialization, const Arch& arch, Purpose purpose);

  [[nodiscard]] const cache::Store& store() const noexcept { return store_; }
  [[nodiscard]] jit::Compiler& compiler() noexcept { return compiler_; }

  // Adds the counters that this room keeps.
  void report(Stats& stats) const;

 private:
  jit::Cubin compile(const jit::Program& program, Purpose purpose);
  [[noreturn]] void not_cached(const jit::Program& program) const;

  OnMiss on_miss_;
  cache::Store store_;
  jit::Compiler compiler_;
  std::atomic<std::uint64_t> disk_hits_{0};
  std::atomic<std::uint64_t> compiles_{0};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint64_t> compile_nanoseconds_{0};
  std::atomic<std::uint64_t> read_nanoseconds_{0};
};

}  // namespace jitsoftmax
