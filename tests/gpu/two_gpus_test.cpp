// Promise: one process, two GPUs: each kernel runs where its context is, and no context is made on a GPU that
// was not asked for.
#include <thread>

#include "gpu/driver_calls.hpp"
#include "gpu/gpu_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

bool has_context(const DriverCalls& calls, int device) {
  unsigned flags = 0;
  int active = 0;
  cuda::check(calls.DevicePrimaryCtxGetState(device, &flags, &active), "cuDevicePrimaryCtxGetState");
  return active != 0;
}

void check_on(int device, Engine& engine, std::int64_t cols) {
  const cuda::PrimaryContext context(device);
  const cuda::ContextScope current(context.context());
  GpuCase test({.cols = cols}, 9);
  test.fill_random(static_cast<unsigned>(device));
  CHECK(test.check(engine.prepare({.cols = cols})) == "");
}

}  // namespace

// The first case: later ones make contexts on both.
TEST_CASE("an engine of one GPU makes no context on the other") {
  const DriverCalls calls;
  for (const OnMiss on_miss : {OnMiss::compile, OnMiss::background}) {
    Options options = Options::from_environment();
    options.device = Device::cuda(1);
    options.on_miss = on_miss;
    Engine engine(options);
    (void)engine.prepare_async({.cols = 65536}).get();
    check_on(1, engine, 65536);
    CHECK_FALSE(has_context(calls, 0));
  }
}

TEST_CASE("engines of both GPUs, and one of the current context, at once from two threads") {
  Options options = Options::from_environment();
  options.device = Device::cuda(0);
  Engine first(options);
  options.device = Device::cuda(1);
  Engine second(options);
  options.device = Device::current();
  Engine current(options);
  std::jthread other([&] {
    for (const std::int64_t cols : {1000, 65536}) {
      check_on(1, second, cols);
      check_on(1, current, cols);
    }
  });
  for (const std::int64_t cols : {1000, 65536}) {
    check_on(0, first, cols);
    check_on(0, current, cols);
  }
}

TEST_CASE("a Kernel that was prepared on one GPU runs on another of its architecture") {
  if (cuda::architecture(0) != cuda::architecture(1)) return;
  Engine engine(gpu_options());
  Kernel kernel;
  {
    const cuda::PrimaryContext context(0);
    const cuda::ContextScope current(context.context());
    kernel = engine.prepare({.cols = 65536});
  }
  const cuda::PrimaryContext context(1);
  const cuda::ContextScope current(context.context());
  GpuCase test({.cols = 65536}, 9);
  test.fill_random(1);
  CHECK(test.check(kernel) == "");
}
