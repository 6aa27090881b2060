// Promise: what `explain` says of a GPU is so: its occupancy is the driver's, and the kernels that it names
// are those that an engine launches.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "api/code.hpp"
#include "api/cuda_executable.hpp"
#include "gpu_case.hpp"
#include "plan/choice.hpp"
#include "plan/occupancy.hpp"
#include "tools/explanation.hpp"

using namespace jitsoftmax;

namespace {

constexpr std::int64_t lengths[] = {1, 64, 333, 1000, 4096, 8192, 16384, 50257, 131072};

}  // namespace

TEST_CASE("the occupancy of every built-in choice is the driver's") {
  const jitsoftmax::testing::Gpu gpu;
  const Arch arch = cuda::architecture(gpu.context.device());
  const auto limits = plan::multiprocessor_limits(arch);
  if (!limits) return;  // nothing is claimed
  const int multiprocessors = cuda::multiprocessors(gpu.context.device());
  Code code(jitsoftmax::testing::gpu_options());
  for (const std::int64_t cols : lengths) {
    for (const DType type : {DType::bf16, DType::f32, DType::f64}) {
      for (const Layout layout : {Layout::contiguous, Layout::strided}) {
        const Problem problem{.cols = cols, .in = type, .out = type, .layout = layout};
        for (const plan::Specialization& s : plan::choose(problem, arch)) {
          CAPTURE(plan::name_expression(s));
          const jit::Cubin cubin = code.get(s, arch, Code::Purpose::tuning).cubin;
          const plan::Occupancy found =
              plan::occupancy(s.config.threads * s.config.rows, static_cast<int>(cubin.resources.registers),
                              std::int64_t{s.config.shared} + cubin.resources.shared_bytes, *limits);
          CHECK(found.blocks * multiprocessors == load(s, cubin).resident_blocks());
        }
      }
    }
  }
}

TEST_CASE("the kernels that it names are those that an engine launches") {
  const jitsoftmax::testing::Gpu gpu;
  const Options options = jitsoftmax::testing::gpu_options();
  Engine engine(options);
  const cuda::DeviceBuffer anywhere(256);  // nothing is launched
  for (const std::int64_t cols : lengths) {
    for (const std::int64_t count : {1, 100}) {
      const Problem problem{.cols = cols};
      const Rows rows{.out = anywhere.get(), .in = anywhere.get(), .count = count};
      const std::string name = engine.prepare(problem).specialization_for(rows);
      const tools::Explanation explained =
          tools::explain({problem, count}, tools::choose_on(problem, 0, options), options, {});
      CAPTURE(name);
      const bool aligned = cols % 4 == 0;  // packed rows
      const auto serves = [&](const tools::ExplainedKernel& kernel) {
        return (aligned ? kernel.for_aligned : kernel.for_others) &&
               plan::name_expression(kernel.specialization) == name;
      };
      CHECK(std::any_of(explained.kernels.begin(), explained.kernels.end(), serves));
    }
  }
}
