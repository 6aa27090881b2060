// Promise: the prediction is near what was measured, moves the way that the hardware does, and is not made where there
// is no model.
#include "plan/prediction.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/tuned.hpp"

using namespace jitsoftmax;

namespace {

constexpr Arch hopper{9, 0};

double predicted(const Problem& problem, std::int64_t rows, plan::Family family, const kernels::Config& config,
                 int blocks) {
  const plan::Specialization s = plan::specialization(problem, family, config);
  return plan::predicted_share(problem, rows, s, {.blocks = blocks}, hopper).value();
}

constexpr kernels::Config one_block{.threads = 512, .vector = 4, .elements = 8};

}  // namespace

TEST_CASE("kernels that were measured on an H200 are predicted within what is said") {
  struct Case {
    Problem problem;
    std::int64_t rows;
    const char* spelling;
    int blocks;  // that a multiprocessor holds
    double share;
    double allowed;
  };
  const Problem bf16{.cols = 16384, .in = DType::bf16, .out = DType::bf16};
  const Case cases[] = {
      {{.cols = 64},
       1048576,
       "registers<Config{.threads=16,.rows=8,.vector=4,.elements=4},Static<64>,float,float,Softmax>",
       16,
       0.994,
       plan::error_of_choices.worst},
      {{.cols = 4096},
       4096,
       "registers<Config{.threads=512,.rows=1,.vector=4,.elements=8,.shared=128},Static<4096>,float,float,Softmax>",
       4,
       0.971,
       plan::error_of_choices.worst},
      {bf16, 4096,
       "registers<Config{.threads=128,.rows=1,.cluster=8,.vector=8,.elements=16,.shared=264},Static<16384>,bf16,bf16,"
       "Softmax>",
       16, 0.685, plan::error_of_candidates.p90},
      {{.cols = 131072},
       1,
       "registers<Config{.threads=256,.rows=1,.cluster=16,.vector=4,.elements=32,.shared=1032},Static<131072>,float,"
       "float,Softmax>",
       4,
       0.485,
       plan::error_of_choices.worst},
  };
  for (const Case& c : cases) {
    CAPTURE(c.spelling);
    const auto s = plan::specialization_named(c.problem, c.spelling);
    REQUIRE(s);
    const double share = plan::predicted_share(c.problem, c.rows, *s, {.blocks = c.blocks}, hopper).value();
    CAPTURE(share);
    CHECK(std::abs(share / c.share - 1) < c.allowed);
  }
}

TEST_CASE("it falls with fewer bytes in flight, fewer rows, more reads and more blocks in clusters") {
  const Problem problem{.cols = 4096};
  using plan::Family;
  const double best = predicted(problem, 16384, Family::registers, one_block, 4);
  CHECK(best > 0.9);
  CHECK(best < 1.05);
  CHECK(predicted(problem, 16384, Family::registers, one_block, 1) < best - 0.1);
  CHECK(predicted(problem, 8, Family::registers, one_block, 4) < best - 0.1);
  const kernels::Config looped{.threads = 256, .vector = 4, .elements = 4};
  CHECK(predicted({.cols = 1 << 20}, 64, Family::looped, looped, 8) < 0.75);
  CHECK(predicted(problem, 16384, Family::safe, looped, 4) < best - 0.1);
  const kernels::Config cluster{.threads = 128, .cluster = 8, .vector = 4, .elements = 4};
  CHECK(predicted(problem, 16384, Family::registers, cluster, 16) < best - 0.1);
}

TEST_CASE("it is finite at the smallest and the largest launches") {
  CHECK(std::isfinite(predicted({.cols = 1}, 1, plan::Family::registers, {.threads = 1, .rows = 128}, 16)));
  const std::int64_t many = std::int64_t{1} << 40;
  CHECK(predicted({.cols = 4096}, many, plan::Family::registers, one_block, 4) == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("where there is no model nothing is predicted") {
  const Problem problem{.cols = 16384};
  const auto share = [&](plan::Family family, const kernels::Config& config, const Arch& arch, int blocks) {
    return plan::predicted_share(problem, 4096, plan::specialization(problem, family, config), {.blocks = blocks},
                                 arch);
  };
  const kernels::Config config{.threads = 512, .vector = 4, .elements = 32};
  CHECK(share(plan::Family::registers, config, hopper, 2));
  CHECK_FALSE(share(plan::Family::registers, config, {8, 0}, 2));
  CHECK_FALSE(share(plan::Family::registers, config, {10, 0}, 2));
  CHECK_FALSE(share(plan::Family::registers, config, hopper, 0));
  CHECK_FALSE(share(plan::Family::counted, config, hopper, 2));
  const Problem columns{.cols = 4096, .layout = Layout::strided};
  CHECK_FALSE(plan::predicted_share(columns, 4096, plan::choose(columns, hopper).front(), {.blocks = 2}, hopper));
  kernels::Config staged = config;
  staged.pieces = 2;
  CHECK_FALSE(share(plan::Family::staged, staged, hopper, 2));
}
