// Promise: a kernel that no block of the device can run, or that uses local memory, is never timed; what
// the built-in choice takes on an H200 is.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/tuned.hpp"
#include "tune/fit.hpp"

using namespace jitsoftmax;

namespace {

constexpr tune::DeviceLimits h200{.threads = 1024, .registers = 65536, .shared_bytes = 227 * 1024};

plan::Specialization in_registers(int threads, int elements) {
  return plan::specialization({.cols = std::int64_t{threads} * elements}, plan::Family::registers,
                              {.threads = threads, .vector = 4, .elements = elements});
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every candidate and every built-in choice is worth compiling for an H200") {
  for (const std::int64_t cols : {1, 100, 1024, 4096, 16384, 131072}) {
    for (const auto& [type, layout] : {std::pair{DType::f16, Layout::contiguous},
                                       {DType::bf16, Layout::contiguous},
                                       {DType::f32, Layout::contiguous},
                                       {DType::f64, Layout::contiguous},
                                       {DType::f32, Layout::strided},
                                       {DType::f64, Layout::strided}}) {
      const Problem problem{.cols = cols, .in = type, .out = type, .layout = layout};
      const plan::Bundle built_in = plan::choose(problem, {9, 0});
      for (const plan::RowsBucket bucket : {plan::RowsBucket::few, plan::RowsBucket::many}) {
        CHECK(tune::unfit(plan::chosen_for(built_in, plan::fewest_rows(bucket)), h200) == "");
      }
      for (const plan::Specialization& s : plan::candidates(problem, {9, 0})) CHECK(tune::unfit(s, h200) == "");
    }
  }
}

TEST_CASE("what a block of the device does not have is told before anything is compiled") {
  CHECK(tune::unfit(in_registers(1024, 32), h200).empty());
  CHECK(mentions(tune::unfit(in_registers(1024, 64), h200), "registers a block"));
  CHECK(mentions(tune::unfit(in_registers(1024, 32), {.threads = 512}), "1024 threads a block, of 512"));
  const plan::Specialization staged = plan::specialization({.cols = 32768}, plan::Family::staged,
                                                           {.threads = 256, .vector = 4, .elements = 128, .pieces = 8});
  CHECK(tune::unfit(staged, h200).empty());
  CHECK(mentions(tune::unfit(staged, {.shared_bytes = 99 * 1024}), "of 101376"));
}

TEST_CASE("what was compiled has to fit, and to do without local memory") {
  const plan::Specialization s = in_registers(1024, 16);
  CHECK(tune::unfit(s, {.registers = 64}, h200).empty());
  CHECK(mentions(tune::unfit(s, {.registers = 65}, h200), "73728 registers a block"));
  CHECK(mentions(tune::unfit(s, {.registers = 32, .stack_bytes = 8}, h200), "8 bytes of stack"));
  CHECK(mentions(tune::unfit(s, {.registers = 32, .spill_bytes = 4}, h200), "4 spilled"));
  CHECK(mentions(tune::unfit(s, {.registers = 32, .shared_bytes = 232448}, h200), "shared memory"));
}
