// The built-in choice, with Static columns, is right on both sides of every length at which it
// changes; and a row has the same bits in place and in every order of the threads, and if that is asked for at every
// alignment.
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

void expect_same_bits(const Outcome& a, const Outcome& b, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    CAPTURE(row);
    CHECK(a.out.same_bits(static_cast<std::int64_t>(row), b.out, static_cast<std::int64_t>(row)));
  }
}

void serve(const Problem& problem, bool deterministic, std::mt19937_64& random) {
  CAPTURE(plan::describe(problem));
  const plan::Bundle bundle = chosen(problem, deterministic);
  // A whole block and a part of one, where a block has several rows.
  const bool strided = problem.layout == Layout::strided;
  const std::int64_t inner = strided ? 8 : 1;  // a copy of 16 bytes
  const std::int64_t count = plan::rows_of_tile(bundle.front()) + inner;
  const int vector = bundle.front().config.vector;
  const Sample rows = random_sample(problem, count, random);

  const Outcome packed = run(rows, bundle, {.inner = inner}, seed());
  CHECK_MESSAGE(packed.failure.empty(), packed.failure);
  const Placement crooked{.in_phase = 1, .out_phase = vector / 2, .in_gap = 3, .out_gap = vector, .inner = inner};
  const Outcome moved = run(rows, bundle, crooked, seed() + 1);
  CHECK_MESSAGE(moved.failure.empty(), moved.failure);
  if (deterministic) expect_same_bits(packed, moved, rows.rows.size());
  if (problem.in == problem.out) {
    // Rows of the same alignments as the crooked ones.
    const Outcome in_place =
        run(rows, bundle, {.in_phase = 1, .in_gap = 3, .inner = inner, .in_place = true}, seed() + 2);
    CHECK_MESSAGE(in_place.failure.empty(), in_place.failure);
    expect_same_bits(moved, in_place, rows.rows.size());
  }
}

void serve(DType in, DType out) {
  INFO("JITSOFTMAX_SEED=", seed());
  std::mt19937_64 random(seed());
  for (const bool deterministic : {false, true}) {
    for (const Problem& problem : threshold_problems(deterministic)) {
      if (problem.in == in && problem.out == out) serve(problem, deterministic, random);
    }
  }
  report_counts();
}

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
