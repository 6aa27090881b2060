// Every family and named variant, with Runtime columns, serves every row length, type, operation and
// alignment of input and output.
#include <doctest/doctest.h>

#include <random>

#include "host/cases.hpp"
#include "host/launch.hpp"
#include "host/seed.hpp"
#include "host/trial.hpp"
#include "plan/candidates.hpp"
#include "plan/variants.hpp"

namespace jitsoftmax::host_test {
namespace {

// Rows: of kernels with several a block, a whole block and a part of one, or less than one.
constexpr std::int64_t count = 5;
constexpr std::size_t count_of_blocks = 3;  // more than the two blocks of a persistent grid

// Every third length, which is the one with the remainder 1, all rows are aligned. Otherwise all pairs
// of phases take turns, with rows of one phase and rows that change theirs: among 300 lengths each
// kernel meets each pair.
Placement placement(const Problem& problem, std::int64_t turn) {
  const int vector = plan::widest_vector(problem);
  const std::int64_t to_whole_vectors = (vector - problem.cols % vector) % vector;
  if (problem.cols % 3 == 1) return {.in_gap = to_whole_vectors, .out_gap = to_whole_vectors};
  return {.in_phase = turn % vector,
          .out_phase = turn / vector % vector,
          .in_gap = turn % 3 == 0 ? 1 + turn % 5 : to_whole_vectors,
          .out_gap = turn % 5 < 2 ? turn % 7 : to_whole_vectors};
}

Sample first_rows(Sample rows, std::size_t number) {
  rows.rows.resize(number);
  rows.expected.resize(number);
  return rows;
}

void serve(const Problem& types) {
  INFO("JITSOFTMAX_SEED=", seed());
  std::mt19937_64 random(seed());
  std::int64_t turn = 0;
  Problem problem = types;
  for (problem.cols = 1; problem.cols <= longest_runtime_row; ++problem.cols) {
    problem.layout = Layout::contiguous;
    const float scale = problem.cols % 4 == 0 ? 0.3f : 1.0f;
    const Sample rows = random_sample(problem, count, random, scale);
    const Sample fewer = first_rows(rows, count_of_blocks);
    for (const NamedKernel& kernel : runtime_kernels(problem)) {
      const bool one_a_block = kernel.bundle.front().config.rows == 1;
      const Outcome outcome = run(one_a_block ? fewer : rows, kernel.bundle, placement(problem, turn++), seed());
      CHECK_MESSAGE(outcome.failure.empty(), kernel.name << ": " << outcome.failure);
    }
    problem.layout = Layout::strided;
    const Sample beside = random_sample(problem, 8, random, scale);
    for (const NamedKernel& kernel : runtime_kernels(problem)) {
      Placement place = placement(problem, turn++);
      place.inner = std::int64_t{1} << turn % 4;  // in whole packets, or not
      const Outcome outcome = run(beside, kernel.bundle, place, seed());
      CHECK_MESSAGE(outcome.failure.empty(), kernel.name << ": " << outcome.failure);
    }
  }
  report_counts();
}

void serve(DType in, DType out) {
  for (const Op op : {Op::softmax, Op::log_softmax}) serve({.cols = 0, .in = in, .out = out, .op = op});
}

// One test case a pair, so that each is a test of its own for ctest.
TEST_CASE("f16 to f16") { serve(DType::f16, DType::f16); }
TEST_CASE("bf16 to bf16") { serve(DType::bf16, DType::bf16); }
TEST_CASE("f32 to f32") { serve(DType::f32, DType::f32); }
TEST_CASE("f64 to f64") { serve(DType::f64, DType::f64); }
TEST_CASE("f16 to f32") { serve(DType::f16, DType::f32); }
TEST_CASE("bf16 to f32") { serve(DType::bf16, DType::f32); }
TEST_CASE("f32 to f16") { serve(DType::f32, DType::f16); }
TEST_CASE("f32 to bf16") { serve(DType::f32, DType::bf16); }

}  // namespace
}  // namespace jitsoftmax::host_test
