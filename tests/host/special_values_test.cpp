// Infinities, NaN, subnormals, offsets and long sums: every kernel gives what the mathematics says.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "host/cases.hpp"
#include "host/launch.hpp"
#include "host/seed.hpp"
#include "host/trial.hpp"

namespace jitsoftmax::host_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t count = 3;  // rows; the kernels have more in a block

struct Scope {
  ~Scope() { report_counts(); }
};

// Runs every kernel for the problem, also with its elements strided.
void run_all(Problem problem, const Values& values, MaskedRows masked = MaskedRows::nan) {
  INFO("JITSOFTMAX_SEED=", seed());
  Sample rows = sample(problem, count, values, 1, masked);
  for (const Layout layout : {Layout::contiguous, Layout::strided}) {
    rows.problem.layout = layout;
    for (const NamedKernel& kernel : every_kernel(rows.problem)) {
      const Placement place{.in_gap = 1, .out_gap = 2, .inner = layout == Layout::strided ? count : 1};
      const Outcome outcome = run(rows, kernel.bundle, place, seed());
      CHECK_MESSAGE(outcome.failure.empty(), kernel.name << ": " << outcome.failure);
    }
  }
}

// The test's own numbers, not the reference's.
double first_result(const Problem& problem, const std::vector<double>& row, std::size_t col = 0) {
  const Sample expected = sample(problem, 1, [&](auto, std::int64_t j) { return row[static_cast<std::size_t>(j)]; });
  return expected.expected[0][col];
}

TEST_CASE("a row of -inf only becomes NaN, or zeros where that is asked for") {
  const Scope scope;
  for (Problem problem : all_types()) {
    for (const std::int64_t cols : {1, 2, 31, 33, 300}) {
      problem.cols = cols;
      const auto middle_masked = [](std::int64_t row, std::int64_t col) {
        return row == 1 ? -inf : static_cast<double>(col % 7);
      };
      run_all(problem, middle_masked);
      run_all(problem, middle_masked, MaskedRows::zero);
    }
  }
  CHECK(std::isnan(first_result({.cols = 2}, {-inf, -inf})));
}

TEST_CASE("NaN and +inf make the whole row NaN and no other, in both modes") {
  const Scope scope;
  for (Problem problem : all_types()) {
    for (const std::int64_t cols : {1, 3, 33, 257}) {
      problem.cols = cols;
      for (const double bad : {nan, inf}) {
        for (const MaskedRows masked : {MaskedRows::nan, MaskedRows::zero}) {
          for (const double others : {-inf, 1.0}) {
            const auto one_bad = [&](std::int64_t row, std::int64_t col) {
              return row != 1 ? 1.0 : col == cols / 2 ? bad : others;
            };
            run_all(problem, one_bad, masked);
          }
        }
      }
    }
  }
  CHECK(std::isnan(first_result({.cols = 3}, {nan, -inf, -inf})));
  CHECK(std::isnan(first_result({.cols = 2}, {0, inf})));
}

TEST_CASE("-inf among finite values becomes exactly 0, or -inf") {
  for (Problem problem : all_types()) {
    for (const std::int64_t cols : {2, 33, 300}) {
      problem.cols = cols;
      run_all(problem, [&](std::int64_t row, std::int64_t col) { return (col + row) % cols == 0 ? 3.0 : -inf; });
      run_all(problem, [](std::int64_t, std::int64_t col) { return col % 2 == 0 ? -inf : -2.0; });
    }
  }
}

TEST_CASE("large negative values stay finite, and lanes without an element add nothing") {
  const Scope scope;
  run_all({.cols = 2}, [](std::int64_t, std::int64_t col) { return -60000.0 - static_cast<double>(col); });
  CHECK(first_result({.cols = 2}, {-60000, -60001}) == doctest::Approx(0.7310586).epsilon(1e-7));
  for (Problem problem : all_types()) {
    for (const std::int64_t cols : {1, 2, 31, 33, 300}) {
      problem.cols = cols;
      run_all(problem, [](std::int64_t, std::int64_t) { return -1000.0; });
    }
  }
  for (const std::int64_t cols : {1023, 1024, 1025}) {
    run_all({.cols = cols}, [](std::int64_t, std::int64_t) { return -1000.0; });
  }
  CHECK(first_result({.cols = 33}, std::vector<double>(33, -1000)) == doctest::Approx(1.0 / 33));
}

TEST_CASE("sums of half types are formed in f32, and subnormal results stay") {
  const auto equal = [](std::int64_t, std::int64_t) { return 1.0; };
  run_all({.cols = 4096, .in = DType::f16, .out = DType::f16}, equal);
  run_all({.cols = 512, .in = DType::bf16, .out = DType::bf16}, equal);
  run_all({.cols = 131072, .in = DType::f16, .out = DType::f16}, equal);  // 2^-17 is subnormal
  run_all({.cols = 2}, [](std::int64_t, std::int64_t col) { return col == 0 ? 0.0 : -100.0; });
  CHECK(first_result({.cols = 2}, {0, -100}, 1) == doctest::Approx(3.7835e-44));
}

TEST_CASE("the ends of the range") {
  const double largest = static_cast<double>(std::numeric_limits<float>::max());
  run_all({.cols = 2}, [&](std::int64_t, std::int64_t col) { return col == 0 ? largest : -largest; });
  run_all({.cols = 3, .in = DType::f64, .out = DType::f64},
          [](std::int64_t, std::int64_t col) { return col == 2 ? 1e100 : 1.0; });
}

TEST_CASE("an offset of the whole row changes nothing") {
  const Scope scope;
  std::mt19937_64 random(seed());
  std::uniform_int_distribution<int> eighths(-64, 64);  // with every offset they stay representable
  for (const std::int64_t cols : {33, 300, 1025, 4096}) {
    std::vector<double> base(static_cast<std::size_t>(cols));
    for (double& value : base) value = eighths(random) / 8.0;
    for (const double offset : {1e4, 1e5, 1e6}) {
      run_all({.cols = cols},
              [&](std::int64_t, std::int64_t col) { return base[static_cast<std::size_t>(col)] + offset; });
    }
  }
}

TEST_CASE("long sums do not drift") {
  const Scope scope;
  for (const std::int64_t cols : {4096, 131072}) {
    run_all({.cols = cols},
            [&](std::int64_t, std::int64_t col) { return static_cast<double>(col) / static_cast<double>(cols - 1); });
  }
  const Problem longest{.cols = 1 << 22};
  const Sample constant = sample(longest, 1, [](std::int64_t, std::int64_t) { return 1.0; });
  const Outcome outcome = run(constant, chosen(longest), {}, seed());
  CHECK_MESSAGE(outcome.failure.empty(), outcome.failure);
}

TEST_CASE("a row's results add up to 1") {
  const Scope scope;
  std::mt19937_64 random(seed());
  std::normal_distribution<double> normal;
  for (const DType type : {DType::f32, DType::f64}) {
    for (std::int64_t cols = 1; cols <= 2100; cols += cols < longest_runtime_row ? 1 : 7) {
      const Problem problem{.cols = cols, .in = type, .out = type};
      const Sample rows = sample(problem, 1, [&](std::int64_t, std::int64_t) { return normal(random); });
      const Outcome outcome = run(rows, runtime_kernels(problem).front().bundle, {}, seed());
      CHECK_MESSAGE(outcome.failure.empty(), outcome.failure);
      double sum = 0;
      for (std::int64_t col = 0; col < cols; ++col) sum += outcome.out.get(0, col);
      INFO("JITSOFTMAX_SEED=", seed());
      CAPTURE(cols);
      CHECK(std::abs(sum - 1) <= (type == DType::f32 ? 1e-6 : 1e-13));
    }
  }
}

}  // namespace
}  // namespace jitsoftmax::host_test
