// Promise: an engine without a compiler and without anywhere to write launches every shape that its layer was
// warmed for, in every alignment and number of rows, with the right results.
#include <string>
#include <vector>

#include "gpu/gpu_case.hpp"
#include "plan/specialization.hpp"
#include "temporary_directory.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

const std::vector<Problem> shapes{{.cols = 77},
                                  {.cols = 1000},
                                  {.cols = 16384},
                                  {.cols = 1024, .in = DType::bf16, .out = DType::f32, .op = Op::log_softmax},
                                  {.cols = 512, .in = DType::f16, .out = DType::f16, .layout = Layout::strided},
                                  {.cols = 33, .in = DType::f64, .out = DType::f64}};

Options deployed(const std::string& layer) {
  Options options;
  options.device = Device::current();
  options.on_miss = OnMiss::fail;
  options.cache_layers = {layer};
  options.cache_dir = "";
  options.nvrtc = "/nonexistent/libnvrtc.so";
  return options;
}

}  // namespace

TEST_CASE("a warmed layer serves every alignment and number of rows where nothing can be compiled") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  {
    Options builder = gpu_options();
    builder.cache_dir = directory / "layer";
    (void)Engine(builder).warmup(shapes, {cuda::architecture(cuda::current_device())});
  }
  Engine engine(deployed(directory / "layer"));
  for (const Problem& problem : shapes) {
    const Kernel kernel = engine.prepare(problem);
    for (const std::int64_t count : {1, 2, 64, 65, 300}) {
      for (int in = 0; in < 16; in += count == 2 ? 1 : 5) {
        for (int out = 0; out < 16; out += count == 2 ? 3 : 7) {
          GpuCase test(problem, count, problem.layout == Layout::strided ? count : 1);
          test.in_offset = in;
          test.out_offset = out;
          test.fill_random(static_cast<unsigned>(count));
          CAPTURE(plan::describe(problem));
          CAPTURE(count);
          CAPTURE(in);
          CAPTURE(out);
          REQUIRE(test.check(kernel) == "");
        }
      }
    }
  }
  CHECK(engine.stats().compiles == 0);
  CHECK(engine.stats().disk_hits == engine.stats().kernels);
  CHECK_THROWS_WITH_AS((void)engine.prepare({.cols = 4321}), doctest::Contains("echo '4321 f32' | jitsoftmax"), Error);
}
