#include "api/code.hpp"

#include <chrono>
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
  if (variant.low_latency) add("low-latency", *variant.low_latency ? "true" : "false");
  if (variant.staggered) add("staggered", *variant.staggered ? "true" : "false");
  return text;
}

// As a line of a shapes file has it; "N" is any length.
std::string shape_of(const plan::Specialization& specialization) {
  const Problem problem = plan::problem_of(specialization);
  const std::string text = plan::describe(problem);
  return problem.cols > 0 ? text : "N" + text.substr(1);
}

}  // namespace

Code::Code(const Options& options, base::FileSystem& files)
    : on_miss_(options.on_miss),
      variant_(options.variant),
      deterministic_(options.deterministic),
      store_({.layers = options.cache_layers,
              .directory = cache::resolve_directory(options.cache_dir),
              .log = options.log,
              .limit = options.cache_limit,
              .trusted = options.trusted_owners},
             files),
      compiler_(options.nvrtc, options.log) {
  if (!options.cache_dir && store_.options().directory.empty()) {
    base::report(
        options.log, LogLevel::warning,
        "no cache directory: neither XDG_CACHE_HOME nor HOME names one; compiled kernels are kept in memory only. "
        "Set JITSOFTMAX_CACHE_DIR, or Options::cache_dir (empty: none is wanted)");
  }
}

// What compile() gives for so many kernels.
template <class Compile>
auto Code::counted(std::uint64_t kernels, const Compile& compile) {
  const auto start = std::chrono::steady_clock::now();
  const auto count_time = [&] {
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
    compile_nanoseconds_.fetch_add(static_cast<std::uint64_t>(elapsed.count()), std::memory_order_relaxed);
  };
  try {
    auto result = compile();
    compiles_.fetch_add(kernels, std::memory_order_relaxed);
    count_time();
    return result;
  } catch (...) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    count_time();
    throw;
  }
}

Code::Result Code::get(const plan::Specialization& specialization, const Arch& arch, Purpose purpose) {
  const jit::Program program = jit::program(specialization, arch);
  const cache::Key key = cache::key_of(program, jit::templates());
  const auto start = std::chrono::steady_clock::now();
  std::optional<cache::Store::Found> found = store_.find_from(0, key, program);
  if (found && !(purpose == Purpose::refresh && is_outdated(*found, program))) return hit(*std::move(found), start);
  if (purpose == Purpose::launch && on_miss_ == OnMiss::fail) not_cached(specialization, program);
  return compile_and_keep(key, program, purpose);
}

std::vector<Code::Result> Code::compile_together(const std::vector<plan::Specialization>& specializations,
                                                 const Arch& arch) {
  std::vector<jit::Program> programs;
  programs.reserve(specializations.size());
  for (const plan::Specialization& each : specializations) programs.push_back(jit::program(each, arch));
  std::vector<Result> results;
  for (jit::Cubin& cubin : counted(programs.size(), [&] { return compiler_.compile_together(programs); }))
    results.push_back({.cubin = std::move(cubin), .compiled = true});
  return results;
}

Code::Result Code::get_instead(const Result& refused, const plan::Specialization& specialization, const Arch& arch,
                               Purpose purpose, const std::string& reason) {
  const jit::Program program = jit::program(specialization, arch);
  const cache::Key key = cache::key_of(program, jit::templates());
  disk_hits_.fetch_sub(1, std::memory_order_relaxed);  // it was a miss
  const std::string refusal = "is refused by the driver: " + reason;
  const std::string path = store_.reject(refused.place, key, refusal);
  const auto start = std::chrono::steady_clock::now();
  if (auto found = store_.find_from(refused.place + 1, key, program)) return hit(*std::move(found), start);

  const std::string what = "the cached code of " + program.name + " for " + arch.name() + ", " + path + ", " + refusal;
  if (purpose == Purpose::launch && on_miss_ == OnMiss::fail)
    throw Error(ErrorCode::not_cached,
                what + " It is not compiled again, since on_miss is 'fail'; remove the file, then: " +
                    how_to_add(specialization, program));
  try {
    return compile_and_keep(key, program, purpose);
  } catch (const Error& error) {
    throw Error(error.code(), what + " It cannot be compiled again: " + error.what());
  }
}

Code::Result Code::hit(cache::Store::Found found, std::chrono::steady_clock::time_point start) {
  disk_hits_.fetch_add(1, std::memory_order_relaxed);
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
  read_nanoseconds_.fetch_add(static_cast<std::uint64_t>(elapsed.count()), std::memory_order_relaxed);
  return {.cubin = std::move(found.cubin), .place = found.place};
}

Code::Result Code::compile_and_keep(const cache::Key& key, const jit::Program& program, Purpose purpose) {
  Result result{.cubin = compile(program, purpose), .compiled = true};
  const bool stored = store_.put(key, program, result.cubin);
  if (!stored && (purpose == Purpose::warmup || purpose == Purpose::refresh)) {
    throw Error(
        ErrorCode::io_error,
        "compiled " + program.name + " for " + program.arch.name() + ", but it could not be stored in " +
            (store_.options().directory.empty() ? "any directory: none is configured" : store_.options().directory) +
            "; make that directory writable or name another one with JITSOFTMAX_CACHE_DIR");
  }
  return result;
}

jit::Cubin Code::compile(const jit::Program& program, Purpose purpose) {
  const bool exactly = purpose != Purpose::launch && purpose != Purpose::tuning;
  return counted(1, [&] { return exactly ? compiler_.compile(program) : compiler_.compile_for_device(program); });
}

bool Code::is_outdated(const cache::Store::Found& found, const jit::Program& program) {
  if (found.cubin.compiler == compiler_.version()) return false;
  if (const auto& layers = store_.options().layers; found.place < layers.size()) {
    throw Error(ErrorCode::invalid_argument,
                "NVRTC " + found.cubin.compiler + " made " + program.name + " for " + program.arch.name() +
                    ", and it is in the read-only layer " + layers[found.place] +
                    ", which comes first; refresh it there, with that as the writable directory (--cache-dir) and "
                    "without JITSOFTMAX_CACHE_LAYERS");
  }
  return true;
}

std::string Code::how_to_add(const plan::Specialization& specialization, const jit::Program& program) const {
  if (specialization.origin == Origin::record)
    return "a tuning record picked it: bring it along with 'jitsoftmax cache export', which takes both";
  if (deterministic_)
    return "add it with Engine::warmup of an engine that is deterministic, for " + shape_of(specialization);
  std::string advice = "add it, where there is an NVRTC, with: echo '" + shape_of(specialization) +
                       "' | jitsoftmax warmup --shapes - --arch " + program.arch.name() + warmup_options(variant_);
  const std::vector<std::string>& layers = store_.options().layers;
  const std::string& directory = store_.options().directory;
  const std::string target = directory.empty() && !layers.empty() ? layers.front() : directory;
  if (!target.empty()) advice += " --cache-dir " + base::shell_word(target);
  return advice;
}

void Code::not_cached(const plan::Specialization& specialization, const jit::Program& program) const {
  std::string where;
  for (const std::string& layer : store_.options().layers) where += " " + layer;
  if (!store_.options().directory.empty()) where += " " + store_.options().directory;
  throw Error(ErrorCode::not_cached, "no kernel for " + shape_of(specialization) + " on " + program.arch.name() + ": " +
                                         program.name + " is in no cache directory (" +
                                         (where.empty() ? "none is configured" : "looked in" + where) +
                                         ") and on_miss is 'fail'; " + how_to_add(specialization, program));
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
