// Promise: static engines die after the driver has, with compiles under way, and the process ends with 0 and
// without a word.
#include <cstdio>
#include <jitsoftmax/jitsoftmax.hpp>
#include <memory>
#include <optional>

#include "cuda/device.hpp"
#include "cuda/driver.hpp"
#include "cuda/memory.hpp"

namespace {

using namespace jitsoftmax;

// Made before the driver is opened, so destroyed after its exit handlers.
std::optional<Engine> engine;
Kernel kernel;
std::unique_ptr<const cuda::PrimaryContext> context;

}  // namespace

int main() {
  try {
    context = std::make_unique<const cuda::PrimaryContext>(0);
  } catch (const Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  Options options = Options::from_environment();
  options.device = Device::cuda(0);
  options.cache_dir = "";
  options.on_miss = OnMiss::background;
  options.specialize_after = 1;
  options.max_kernels = 2;
  engine.emplace(options);
  kernel = engine->prepare({.cols = 500});
  const cuda::ContextScope current(context->context());
  // Left to the system: a static owner of device memory is not what this is about.
  static cuda::DeviceBuffer& data = *std::make_unique<cuda::DeviceBuffer>(1000 * 8 * 4).release();
  Rows rows;
  rows.in = rows.out = data.get();
  rows.count = 8;
  kernel.launch(rows);
  for (std::int64_t cols = 501; cols < 540; ++cols) engine->softmax({.cols = cols}, rows);
  return 0;
}
