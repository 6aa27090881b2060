// What a launch costs on the host over a bare cuLaunchKernel. The driver is a stand-in that does nothing,
// so that all that is measured is the library. Kernels come from a stand-in compiler.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <jitsoftmax/jitsoftmax.hpp>

#include "cuda/driver.hpp"
#include "kernel_templates/config.cuh"
#include "stand_in/driver.hpp"
#include "stand_in/nvrtc.hpp"

namespace {

using namespace jitsoftmax;

constexpr Problem problem{.cols = 4096};

Rows rows() {
  Rows rows;
  rows.in = reinterpret_cast<const void*>(0x10000000);
  rows.out = reinterpret_cast<void*>(0x20000000);
  rows.count = 4096;
  return rows;
}

Engine& engine() {
  static Engine instance([] {
    Options options;
    options.cache_dir = "";
    options.nvrtc = stand_in::nvrtc_file();
    return options;
  }());
  return instance;
}

// The engine works on the current context of each thread.
void enter() {
  stand_in::observe(false);
  stand_in::set_current(stand_in::primary_context(0));
}

void bare_launch(benchmark::State& state) {
  enter();
  kernels::Arguments arguments;
  void* parameters[] = {&arguments};
  const cuda::Driver& driver = cuda::driver();
  for (auto _ : state) {
    benchmark::DoNotOptimize(driver.LaunchKernel(nullptr, 4096, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  }
}

void kernel_launch(benchmark::State& state) {
  enter();
  const Kernel kernel = engine().prepare(problem);
  const Rows launched = rows();
  for (auto _ : state) kernel.launch(launched);
}

void engine_softmax(benchmark::State& state) {
  enter();
  (void)engine().prepare(problem);
  const Rows launched = rows();
  for (auto _ : state) engine().softmax(problem, launched);
}

}  // namespace

BENCHMARK(bare_launch)->ThreadRange(1, 16)->UseRealTime();
BENCHMARK(kernel_launch)->ThreadRange(1, 16)->UseRealTime();
BENCHMARK(engine_softmax)->ThreadRange(1, 16)->UseRealTime();
BENCHMARK_MAIN();
