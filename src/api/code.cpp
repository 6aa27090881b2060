#include "api/code.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "cache/key.hpp"

namespace jitsoftmax {

Code::Code(const Options& options)
    : on_miss_(options.on_miss),
      store_({.layers = options.cache_layers,
              .directory = cache::resolve_directory(options.cache_dir),
              .log = options.log,
              .limit = options.cache_limit}),
      compiler_(options.nvrtc, options.log) {
  if (!options.cache_dir && store_.options().directory.empty()) {
    base::report(
        options.log, LogLevel::warning,
        "no cache directory: neither XDG_CACHE_HOME nor HOME names one; compiled kernels are kept in memory only. "
        "Set JITSOFTMAX_CACHE_DIR, or Options::cache_dir (empty: none is wanted)");
  }
}

Code::Result Code::get(const plan::Specialization& specialization, const Arch& arch, Purpose purpose) {
  const jit::Program program = jit::program(specialization, arch);
  const cache::Key key = cache::key_of(program, jit::templates());
  const auto start = std::chrono::steady_clock::now();
  if (std::optional<jit::Cubin> cubin = store_.find(key, program)) {
    disk_hits_.fetch_add(1, std::memory_order_relaxed);
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
    read_nanoseconds_.fetch_add(static_cast<std::uint64_t>(elapsed.count()), std::memory_order_relaxed);
    return {std::move(*cubin), false};
  }
  if (purpose == Purpose::launch && on_miss_ == OnMiss::fail) not_cached(program);

  Result result{compile(program, purpose), true};
  const bool stored = store_.put(key, program, result.cubin);
  if (!stored && purpose == Purpose::warmup) {
    throw Error(
        ErrorCode::io_error,
        "compiled " + program.name + " for " + arch.name() + ", but it could not be stored in " +
            (store_.options().directory.empty() ? "any directory: none is configured" : store_.options().directory) +
            "; make that directory writable or name another one with JITSOFTMAX_CACHE_DIR");
  }
  return result;
}

jit::Cubin Code::compile(const jit::Program& program, Purpose purpose) {
  const auto start = std::chrono::steady_clock::now();
  const auto count_time = [&] {
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
    compile_nanoseconds_.fetch_add(static_cast<std::uint64_t>(elapsed.count()), std::memory_order_relaxed);
  };
  try {
    const bool exactly = purpose == Purpose::warmup || purpose == Purpose::inspect;
    jit::Cubin cubin = exactly ? compiler_.compile(program) : compiler_.compile_for_device(program);
    compiles_.fetch_add(1, std::memory_order_relaxed);
    count_time();
    return cubin;
  } catch (...) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    count_time();
    throw;
  }
}

void Code::not_cached(const jit::Program& program) const {
  std::string where;
  for (const std::string& layer : store_.options().layers) where += " " + layer;
  if (!store_.options().directory.empty()) where += " " + store_.options().directory;
  throw Error(ErrorCode::not_cached,
              program.name + " for " + program.arch.name() + " is in no cache directory (" +
                  (where.empty() ? "none is configured" : "looked in" + where) +
                  ") and on_miss is 'fail'; add it with: jitsoftmax warmup --shapes FILE --arch " +
                  program.arch.name());
}

void Code::report(Stats& stats) const {
  stats.disk_hits = disk_hits_.load(std::memory_order_relaxed);
  stats.compiles = compiles_.load(std::memory_order_relaxed);
  stats.compile_failures = failures_.load(std::memory_order_relaxed);
  stats.compile_seconds = static_cast<double>(compile_nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
  stats.load_seconds = static_cast<double>(read_nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
  stats.rejected_entries = store_.rejected();
  stats.cache_faults = store_.faults();
}

}  // namespace jitsoftmax
