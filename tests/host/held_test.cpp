// Kernels that hold a row between one read and one write, in every way there is: right at every
// alignment and in place. The deterministic ones give a row the same bits wherever it is, the peeled
// ones wherever the output is.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "host/cases.hpp"
#include "host/launch.hpp"
#include "host/seed.hpp"
#include "host/trial.hpp"
#include "plan/candidates.hpp"

namespace jitsoftmax::host_test {
namespace {

void expect_same_bits(const Outcome& a, const Outcome& b, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    CAPTURE(row);
    CHECK(a.out.same_bits(row, b.out, row));
  }
}

Outcome right(const Sample& rows, const NamedKernel& kernel, const Placement& place, std::uint64_t order) {
  Outcome outcome = run(rows, kernel.bundle, place, seed() + order);
  CHECK_MESSAGE(outcome.failure.empty(), kernel.name << ": " << outcome.failure);
  return outcome;
}

// Every alignment of the input, with outputs of the same and of another one.
void serve(const Sample& rows, const HeldCase& held) {
  const auto count = static_cast<std::int64_t>(rows.rows.size());
  const std::int64_t cols = held.problem.cols;
  const int vector = plan::widest_vector(held.problem);
  const std::int64_t whole = (vector - cols % vector) % vector;  // the gap after which all rows are aligned alike
  const Outcome aligned = right(rows, held.deterministic, {.in_gap = whole, .out_gap = whole}, 0);
  (void)right(rows, held.peeled, {.in_gap = whole, .out_gap = whole}, 1);
  for (int phase = 0; phase < vector; ++phase) {
    const std::int64_t gap = phase % 2 == 0 ? whole : whole + 1;
    const Placement alike{.in_phase = phase, .out_phase = phase, .in_gap = gap, .out_gap = gap};
    Placement apart = alike;
    apart.out_phase = (phase * 3 + 1) % vector;
    apart.out_gap = gap + phase % 3;
    const Outcome peeled = right(rows, held.peeled, alike, 2);
    expect_same_bits(peeled, right(rows, held.peeled, apart, 3), count);
    expect_same_bits(aligned, right(rows, held.deterministic, apart, 4), count);
    if (held.problem.in != held.problem.out || phase > 1) continue;
    Placement in_place = alike;
    in_place.in_place = true;
    expect_same_bits(peeled, right(rows, held.peeled, in_place, 5), count);
    expect_same_bits(aligned, right(rows, held.deterministic, in_place, 6), count);
  }
}

void serve(DType in, DType out) {
  INFO("JITSOFTMAX_SEED=", seed());
  std::mt19937_64 random(seed());
  int turn = 0;
  for (const HeldCase& held : held_cases()) {
    if (held.problem.in != in || held.problem.out != out) continue;
    CAPTURE(plan::describe(held.problem));
    const std::int64_t count = held.peeled.bundle.front().config.rows > 4 ? 5 : 3;
    Sample rows = random_sample(held.problem, count, random, turn++ % 3 == 0 ? 0.3f : 1.0f);
    serve(rows, held);
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

TEST_CASE("masked: results as small as the type has, of threads that have no larger one") {
  INFO("JITSOFTMAX_SEED=", seed());
  for (const HeldCase& held : held_cases()) {
    // One number is far above all others, so that a thread's own maximum is not the row's.
    const auto far_below = [](std::int64_t row, std::int64_t col) {
      return col == row ? 0.0 : -80.0 - static_cast<double>((col + row) % 57) / 4;
    };
    const Sample rows = sample(held.problem, 2, far_below);
    (void)right(rows, held.peeled, {.in_phase = 1}, 0);
    (void)right(rows, held.deterministic, {}, 1);
  }
}

TEST_CASE("masked: maxima of warps that are apart by a little or a lot") {
  INFO("JITSOFTMAX_SEED=", seed());
  for (const HeldCase& held : held_cases()) {
    const double cols = static_cast<double>(held.problem.cols);
    // From one end of the second row to the other it is as much as sums of f32 bear; of the third, more.
    for (const double fall : {7.0, 18.0, 30.0}) {
      const auto falls = [&](std::int64_t row, std::int64_t col) {
        return -std::floor(static_cast<double>(row) * fall * static_cast<double>(col) / cols * 8) / 8;
      };
      const Sample rows = sample(held.problem, 3, falls);
      (void)right(rows, held.peeled, {.in_phase = 1}, 0);
      (void)right(rows, held.deterministic, {}, 1);
    }
  }
}

TEST_CASE("masked: rows of -inf, infinities and NaN") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  INFO("JITSOFTMAX_SEED=", seed());
  for (const HeldCase& held : held_cases()) {
    const std::int64_t cols = held.problem.cols;
    // Of the rows the second has one special number among masked ones, the third among others.
    for (const double special : {-inf, -1000.0, inf, nan}) {
      const auto values = [&](std::int64_t row, std::int64_t col) {
        const bool here = col == cols * 2 / 3;
        return row == 0 ? -1000.0 : here ? special : row == 1 ? -inf : static_cast<double>(col % 5);
      };
      for (const MaskedRows masked : {MaskedRows::nan, MaskedRows::zero}) {
        const Sample rows = sample(held.problem, 3, values, 1, masked);
        (void)right(rows, held.peeled, {.in_phase = 1}, 0);
        if (special == -inf) (void)right(rows, held.deterministic, {}, 1);
      }
    }
  }
  report_counts();
}

}  // namespace
}  // namespace jitsoftmax::host_test
