#include "api/code.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "base/shell_word.hpp"
#include "cache/key.hpp"

namespace jitsoftmax {
namespace {

// As the program takes them.
std::string warmup_options(const Variant& variant) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text.append(" --").append(name).append(" ").append(base::shell_word(value));
  };
  const auto add_number = [&](const char* name, const std::optional<int>& value) {
    if (value) add(name, std::to_string(*value));
  };
  if (!variant.name.empty()) add("variant", variant.name);
  if (variant.family) add("family", *variant.family);
  add_number("threads", variant.threads);
  add_number("rows", variant.rows);
  add_number("cluster", variant.cluster);
  add_number("vector", variant.vector);
  add_number("elements", variant.elements);
  add_number("pieces", variant.pieces);
  add_number("resident", variant.resident);
  if (variant.packed) add("packed", *variant.packed ? "true" : "false");
  return text;
}

}  // namespace

Code::Code(const Options& options)
    : on_miss_(options.on_miss),
      variant_(options.variant),
      deterministic_(options.deterministic),
      store_({.layers = options.cache_layers,
              .directory = cache::resolve_directory(options.cache_dir),
              .log = options.log,
              .limit = options.cache_limit,
              .trusted = options.trusted_owners}),
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
  std::optional<jit::Cubin> cubin = store_.find(key, program);
  if (cubin && !(purpose == Purpose::refresh && is_outdated(*cubin, key, program))) {
    disk_hits_.fetch_add(1, std::memory_order_relaxed);
    return {std::move(*cubin), false};
  }
  if (purpose == Purpose::launch && on_miss_ == OnMiss::fail) not_cached(specialization, program);

  Result result{compile(program, purpose), true};
  const bool stored = store_.put(key, program, result.cubin);
  if (!stored && (purpose == Purpose::warmup || purpose == Purpose::refresh)) {
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
    const bool exactly = purpose != Purpose::launch && purpose != Purpose::tuning;
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

bool Code::is_outdated(const jit::Cubin& cubin, const cache::Key& key, const jit::Program& program) {
  if (cubin.compiler == compiler_.version()) return false;
  if (const std::string layer = store_.layer_of(key, program); !layer.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "NVRTC " + cubin.compiler + " made " + program.name + " for " + program.arch.name() +
                    ", and it is in the read-only layer " + layer +
                    ", which comes first; refresh it there, with that as the writable directory (--cache-dir) and "
                    "without JITSOFTMAX_CACHE_LAYERS");
  }
  return true;
}

void Code::not_cached(const plan::Specialization& specialization, const jit::Program& program) const {
  const Problem problem = plan::problem_of(specialization);
  const std::string shape =
      problem.cols > 0 ? plan::describe(problem) : "N" + plan::describe(problem).substr(1);  // any length
  std::string where;
  for (const std::string& layer : store_.options().layers) where += " " + layer;
  const std::string& directory = store_.options().directory;
  if (!directory.empty()) where += " " + directory;

  std::string advice;
  if (specialization.origin == Origin::record) {
    advice = "a tuning record picked it: bring it along with 'jitsoftmax cache export', which takes both";
  } else if (deterministic_) {
    advice = "add it with Engine::warmup of an engine that is deterministic, for " + shape;
  } else {
    advice = "add it, where there is an NVRTC, with: echo '" + shape + "' | jitsoftmax warmup --shapes - --arch " +
             program.arch.name() + warmup_options(variant_);
    const std::string target =
        directory.empty() && !store_.options().layers.empty() ? store_.options().layers.front() : directory;
    if (!target.empty()) advice += " --cache-dir " + base::shell_word(target);
  }
  throw Error(ErrorCode::not_cached, "no kernel for " + shape + " on " + program.arch.name() + ": " + program.name +
                                         " is in no cache directory (" +
                                         (where.empty() ? "none is configured" : "looked in" + where) +
                                         ") and on_miss is 'fail'; " + advice);
}

void Code::report(Stats& stats) const noexcept {
  stats.disk_hits = disk_hits_.load(std::memory_order_relaxed);
  stats.compiles = compiles_.load(std::memory_order_relaxed);
  stats.compile_failures = failures_.load(std::memory_order_relaxed);
  stats.compile_seconds = static_cast<double>(compile_nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
  stats.rejected_entries = store_.rejected();
}

}  // namespace jitsoftmax
