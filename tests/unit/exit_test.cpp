// Promise: a static engine that dies after the driver, with compiles under way, ends well: exit code 0 and
// not a word (ctest fails it for any).
#include <optional>
#include <thread>

#include "stand_in/engine_case.hpp"

using namespace jitsoftmax;

namespace {

// Made before the driver is opened, so destroyed after the handler that tells of the process's end.
std::optional<Engine> engine;
Kernel kernel;

}  // namespace

int main() {
  const testing::CurrentDevice device;
  stand_in::compile_takes(std::chrono::milliseconds(20));
  Options options = testing::stand_in_options();
  options.on_miss = OnMiss::background;
  options.specialize_after = 1;
  options.max_kernels = 2;
  options.workers = 2;
  engine.emplace(options);
  kernel = engine->prepare({.cols = 501});
  kernel.launch(testing::some_rows());
  for (std::int64_t cols = 503; cols < 540; ++cols) engine->softmax({.cols = cols}, testing::some_rows());
  while (stand_in::waiting() == 0) std::this_thread::yield();  // so that the end comes in the middle of one
  return stand_in::violations().empty() ? 0 : 1;
}
