// Promise: the blocks that a multiprocessor holds are those that its warps, registers and shared memory
// allow, as CUDA's occupancy calculator has them.
#include "plan/occupancy.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "plan/candidates.hpp"
#include "plan/choice.hpp"

using namespace jitsoftmax;

namespace {

struct Expected {
  Arch arch;
  int threads;
  int registers;
  int shared;
  int blocks;
  plan::Bound bound;
};

}  // namespace

TEST_CASE("blocks a multiprocessor are those of CUDA's occupancy calculator") {
  // By cudaOccMaxActiveBlocksPerMultiprocessor of CUDA 13.0's cuda_occupancy.h.
  constexpr Arch ampere{8, 0};
  constexpr Arch hopper{9, 0};
  const Expected table[] = {
      {hopper, 128, 16, 0, 16, plan::Bound::warps},          {hopper, 32, 16, 0, 32, plan::Bound::blocks},
      {hopper, 128, 40, 32, 12, plan::Bound::registers},     {hopper, 128, 56, 32, 9, plan::Bound::registers},
      {hopper, 96, 56, 0, 12, plan::Bound::registers},       {hopper, 160, 104, 128, 3, plan::Bound::registers},
      {hopper, 224, 96, 0, 2, plan::Bound::registers},  // 21 warps' registers, but 5 in each quarter
      {hopper, 1024, 33, 128, 1, plan::Bound::registers},    {hopper, 1024, 65, 0, 0, plan::Bound::registers},
      {hopper, 1024, 32, 128, 2, plan::Bound::warps},        {hopper, 256, 32, 49152, 4, plan::Bound::shared},
      {hopper, 256, 32, 102400, 2, plan::Bound::shared},     {hopper, 1024, 32, 232448, 1, plan::Bound::shared},
      {ampere, 256, 32, 49152, 3, plan::Bound::shared},      {ampere, 256, 40, 163840, 1, plan::Bound::shared},
      {ampere, 1024, 32, 232448, 0, plan::Bound::shared},    {ampere, 128, 64, 32, 8, plan::Bound::registers},
      {Arch{8, 6}, 128, 16, 0, 12, plan::Bound::warps},      {Arch{8, 6}, 32, 16, 0, 16, plan::Bound::blocks},
      {Arch{8, 6}, 256, 32, 102400, 0, plan::Bound::shared}, {Arch{8, 9}, 32, 16, 0, 24, plan::Bound::blocks},
      {Arch{8, 9}, 256, 32, 49152, 2, plan::Bound::shared},  {Arch{10, 0}, 256, 32, 49152, 4, plan::Bound::shared},
      {Arch{12, 0}, 32, 16, 0, 24, plan::Bound::blocks},     {Arch{12, 0}, 1024, 32, 128, 1, plan::Bound::warps},
  };
  for (const Expected& expected : table) {
    CAPTURE(expected.arch.name());
    CAPTURE(expected.threads);
    CAPTURE(expected.registers);
    CAPTURE(expected.shared);
    const plan::Occupancy found = plan::occupancy(expected.threads, expected.registers, expected.shared,
                                                  plan::multiprocessor_limits(expected.arch).value());
    CHECK(found.blocks == expected.blocks);
    CHECK(found.warps == expected.blocks * ((expected.threads + 31) / 32));
    CHECK(found.bound == expected.bound);
  }
}

TEST_CASE("an architecture without a table has no occupancy") {
  CHECK(plan::multiprocessor_limits({9, 0, 'a'}));
  CHECK_FALSE(plan::multiprocessor_limits({7, 5}));
  CHECK_FALSE(plan::multiprocessor_limits({9, 9}));
}

TEST_CASE("a block holds no more of the rows than there is") {
  const auto held = [](const Problem& problem, plan::Family family, const kernels::Config& config) {
    return plan::bytes_held(plan::specialization(problem, family, config));
  };
  const Problem f32{.cols = 4096};
  CHECK(held(f32, plan::Family::registers, {.threads = 128, .vector = 4, .elements = 32}) == 4096 * 4);
  // Threads with room to spare.
  const Problem odd{.cols = 4097};
  CHECK(held(odd, plan::Family::registers, {.threads = 128, .vector = 4, .elements = 36}) == 4097 * 4);
  // A part of the row, and several rows.
  CHECK(held(f32, plan::Family::registers, {.threads = 128, .cluster = 2, .vector = 4, .elements = 16}) == 2048 * 4);
  const Problem bf16{.cols = 64, .in = DType::bf16, .out = DType::bf16};
  CHECK(held(bf16, plan::Family::registers, {.threads = 4, .rows = 32, .vector = 8, .elements = 16}) == 32 * 64 * 2);
  // A chunk of a row that is longer, and rows of any length.
  const Problem longer{.cols = std::int64_t{1} << 62};
  const kernels::Config looped{.threads = 1024, .vector = 4, .elements = 16, .blocked = true};
  CHECK(held(longer, plan::Family::looped, looped) == 1024 * 16 * 4);
  plan::Specialization any = plan::specialization(f32, plan::Family::looped, looped);
  any.cols = 0;
  CHECK(plan::bytes_held(any) == 1024 * 16 * 4);
  // Rows side by side.
  const Problem strided{.cols = 100, .layout = Layout::strided};
  CHECK(held(strided, plan::Family::strided_registers, {.threads = 8, .rows = 32, .elements = 13}) == 32 * 100 * 4);
}
