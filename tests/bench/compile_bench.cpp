// What a caller waits for before the first launch: an engine, a compile, a load from the cache.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/driver.hpp"
#include "jit/compiler.hpp"
#include "jit/source.hpp"
#include "plan/choice.hpp"
#include "plan/specialization.hpp"
#include "temporary_directory.hpp"

namespace {

using namespace jitsoftmax;

constexpr Arch arch{9, 0};

// Kernels that hold more elements a thread are left out: beyond, the time to compile grows with them.
constexpr int most_elements = 16;

std::vector<Problem> problems() {
  std::vector<Problem> result;
  const auto add = [&](std::int64_t cols, DType type, Layout layout = Layout::contiguous) {
    Problem problem;
    problem.cols = cols;
    problem.in = problem.out = type;
    problem.layout = layout;
    result.push_back(problem);
  };
  for (const std::int64_t cols : {64, 1000, 1024, 4096, 1'000'003}) add(cols, DType::f32);
  for (const std::int64_t cols : {512, 2048}) add(cols, DType::bf16);
  for (const std::int64_t cols : {512, 4096}) add(cols, DType::f64);
  for (const std::int64_t cols : {64, 100'000}) add(cols, DType::f32, Layout::strided);
  return result;
}

// One compiler for the process: opening NVRTC is not what is measured.
jit::Compiler& compiler() {
  static jit::Compiler instance(Options::from_environment().nvrtc, {});
  return instance;
}

// What any compile takes, however little there is to compile.
jit::Program empty_program() {
  jit::Program program = jit::program("", "empty<0>", arch);
  program.text = "template <int> __global__ void empty() {}\n";
  return program;
}

double seconds_to_compile(const jit::Program& program) {
  const auto start = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(compiler().compile(program));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The empty program takes turns with the kernel, so that both see the same machine.
void cold_compile(benchmark::State& state, const plan::Specialization& specialization) {
  const jit::Program program = jit::program(specialization, arch);
  const jit::Program empty = empty_program();
  try {
    seconds_to_compile(empty);  // the process's first compile opens libraries
  } catch (const Error& error) {
    state.SkipWithError(error.what());
    return;
  }
  std::vector<double> empty_seconds;
  std::vector<double> seconds;
  for (auto _ : state) {
    empty_seconds.push_back(seconds_to_compile(empty));
    seconds.push_back(seconds_to_compile(program));
    state.SetIterationTime(seconds.back());
  }
  if (seconds.empty()) return;
  state.counters["median_ms"] = 1e3 * median(seconds);
  state.counters["empty_ms"] = 1e3 * median(empty_seconds);
  state.counters["of_empty"] = median(seconds) / median(empty_seconds);
  state.counters["elements"] = specialization.config.elements;
}

// A new engine whose cache directory has all kernels of the problem.
void prepare_from_disk(benchmark::State& state, const Problem& problem) {
  const cuda::PrimaryContext context(0);  // kept: making one takes longer than all the rest
  const testing::TemporaryDirectory directory;
  Options options = Options::from_environment();
  options.device = Device::cuda(0);
  options.cache_dir = directory.path();
  options.cache_layers.clear();
  Engine(options).prepare(problem);
  std::uint64_t compiles = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::optional<Engine> engine(std::in_place, options);
    state.ResumeTiming();
    Kernel kernel = engine->prepare(problem);
    state.PauseTiming();
    compiles += engine->stats().compiles;
    kernel = {};
    engine.reset();
    state.ResumeTiming();
  }
  if (compiles != 0) state.SkipWithError("kernels were compiled that the cache should have had");
}

void construct_engine(benchmark::State& state) {
  Options options;
  options.device = Device::current();
  for (auto _ : state) {
    Engine engine(options);
    benchmark::DoNotOptimize(engine);
  }
}

bool has_gpu() {
  try {
    static_cast<void>(cuda::driver());
    return true;
  } catch (const Error& error) {
    std::fprintf(stderr, "prepare_from_disk is left out: %s\n", error.what());
    return false;
  }
}

void register_benchmarks() {
  const bool gpu = has_gpu();
  benchmark::RegisterBenchmark("construct_engine", construct_engine)->Unit(benchmark::kMicrosecond);
  for (const Problem& problem : problems()) {
    const std::string name = plan::describe(problem);
    const plan::Specialization specialization = plan::choose(problem, arch).front();
    if (specialization.config.elements > most_elements) continue;
    benchmark::RegisterBenchmark(("cold_compile/" + name).c_str(), cold_compile, specialization)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    if (!gpu) continue;
    benchmark::RegisterBenchmark(("prepare_from_disk/" + name).c_str(), prepare_from_disk, problem)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
