// NaN, infinities, subnormals and extremes come out of the CPU softmax as documented.
#include <doctest/doctest.h>

#include <cfenv>
#include <cfloat>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "host_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

constexpr TypePair f16 = {DType::f16, DType::f16};
constexpr TypePair bf16 = {DType::bf16, DType::bf16};
constexpr TypePair f32 = {DType::f32, DType::f32};
constexpr TypePair f64 = {DType::f64, DType::f64};

std::vector<double> softmax_of(const std::vector<double>& row, TypePair types, MaskedRows masked = MaskedRows::nan,
                               Op op = Op::softmax) {
  HostCase test(problem_of(static_cast<std::int64_t>(row.size()), types, op), 1);
  test.fill([&](std::int64_t, std::int64_t j) { return row[static_cast<std::size_t>(j)]; });
  test.masked = masked;
  return test.run();
}

}  // namespace

TEST_CASE("one poison or mask at any place of a row, among ordinary rows") {
  // Lengths for lanes across rows, for one row in scratch, and for chunks; `inner` for the other layout.
  struct Shape {
    std::int64_t cols;
    std::int64_t inner;
  };
  constexpr Shape shapes[] = {{1, 1}, {3, 1}, {19, 1}, {33, 1}, {385, 1}, {66000, 1}, {5, 4}, {40, 18}, {1500, 17}};
  for (const TypePair types : type_pairs) {
    for (const Op op : ops) {
      for (const MaskedRows masked : {MaskedRows::nan, MaskedRows::zero}) {
        for (const Shape shape : shapes) {
          if (shape.cols > 1000 && types.in != DType::f32 && types.in != DType::f64) continue;
          const Layout layout = shape.inner > 1 ? Layout::strided : Layout::contiguous;
          HostCase test(problem_of(shape.cols, types, op, layout),
                        shape.cols > 1000 ? 1 * shape.inner : 9 * shape.inner, shape.inner);
          test.masked = masked;
          const std::int64_t rows = test.rows().count;
          test.fill([&](std::int64_t r, std::int64_t j) {
            switch ((r + shape.cols) % 9) {
              case 0:
                return -infinity;
              case 1:
                return j == shape.cols / 2 ? not_a_number : -infinity;
              case 2:
                return j == shape.cols - 1 ? -not_a_number : 1.0;
              case 3:
                return j == 0 ? infinity : 0.5;
              case 4:
                return j == shape.cols - 1 ? 2.0 : -infinity;
              case 5:
                return j % 3 == 1 ? -infinity : static_cast<double>(j % 7);
              case 6:
                return j == 0 ? not_a_number : 0.0;
              case 7:
                return j == shape.cols - 1 ? infinity : -infinity;
              default:
                return static_cast<double>((r + j) % 5);
            }
          });
          const std::string difference = test.check();
          CHECK_MESSAGE(difference.empty(), "in " << int(types.in) << " out " << int(types.out) << " op " << int(op)
                                                  << " cols " << shape.cols << " inner " << shape.inner << " rows "
                                                  << rows << ": " << difference);
        }
      }
    }
  }
}

TEST_CASE("long rows: all masked, and a NaN or an infinity in one chunk") {
  for (const MaskedRows masked : {MaskedRows::nan, MaskedRows::zero}) {
    for (const Op op : ops) {
      for (const double odd : {-infinity, not_a_number, infinity, 3.0}) {
        for (const std::int64_t place : {0, 50000, 99999}) {
          HostCase test(problem_of(100000, f32, op), 1);
          test.masked = masked;
          test.fill([&](std::int64_t, std::int64_t j) { return j == place ? odd : -infinity; });
          CHECK(test.check(2) == "");
          test.fill([&](std::int64_t, std::int64_t j) { return j == place ? odd : -1.0; });
          CHECK(test.check(2) == "");
        }
      }
    }
  }
}

TEST_CASE("a row of -inf only") {
  for (const double p : softmax_of({-infinity, -infinity, -infinity}, f32)) CHECK(std::isnan(p));
  for (const double p : softmax_of({-infinity, -infinity}, f32, MaskedRows::zero)) CHECK(p == 0);
  for (const double p : softmax_of({-infinity, -infinity}, f32, MaskedRows::zero, Op::log_softmax)) {
    CHECK(p == -infinity);
  }
}

TEST_CASE("NaN and +inf poison the whole row, in both modes") {
  for (const MaskedRows masked : {MaskedRows::nan, MaskedRows::zero}) {
    for (const double p : softmax_of({not_a_number, -infinity, -infinity}, f32, masked)) CHECK(std::isnan(p));
    for (const double p : softmax_of({0, infinity}, f32, masked)) CHECK(std::isnan(p));
    for (const double p : softmax_of({0, not_a_number, 1}, f16, masked)) CHECK(std::isnan(p));
  }
}

TEST_CASE("large magnitudes") {
  const std::vector<double> near = softmax_of({-60000, -60001}, f32);
  CHECK(near[0] == doctest::Approx(0.7310586).epsilon(1e-6));
  CHECK(near[1] == doctest::Approx(0.2689414).epsilon(1e-6));
  for (const double p : softmax_of(std::vector<double>(33, -1000), f32)) CHECK(p == static_cast<double>(1.0F / 33));
  const double largest = static_cast<double>(FLT_MAX);
  CHECK(softmax_of({largest, -largest}, f32) == std::vector<double>{1, 0});
  CHECK(softmax_of({1, 1, 1e100}, f64) == std::vector<double>{0, 0, 1});
}

TEST_CASE("one element is 1, its logarithm 0") {
  for (const TypePair types : type_pairs) {
    CHECK(softmax_of({-3.5}, types) == std::vector<double>{1});
    CHECK(softmax_of({1000}, types, MaskedRows::nan, Op::log_softmax) == std::vector<double>{0});
  }
}

TEST_CASE("long rows of 16-bit types") {
  for (const double p : softmax_of(std::vector<double>(4096, 1.5), f16)) REQUIRE(p == 0x1p-12);
  for (const double p : softmax_of(std::vector<double>(131072, 1.5), f16)) REQUIRE(p == 0x1p-17);
  for (const double p : softmax_of(std::vector<double>(512, -2), bf16)) REQUIRE(p == 0x1p-9);
}

TEST_CASE("subnormal results stay") {
  const std::vector<double> two = softmax_of({0, -100}, f32);
  CHECK(two[0] == 1);
  CHECK(two[1] == static_cast<double>(3.7835e-44F));
  for (const host::Kernels* kernels : host::usable_kernels()) {
    for (const TypePair types : {f32, f64}) {
      const double step = types.in == DType::f64 ? 7.5 : 1.06;
      HostCase test(problem_of(100, types), 1);
      test.fill([&](std::int64_t, std::int64_t j) { return -step * static_cast<double>(j); });
      CHECK(test.check(1, kernels) == "");
    }
  }
}

TEST_CASE("long rows that descend to nothing") {
  for (const TypePair types : {f32, f64}) {
    for (const std::int64_t cols : {70001, 2200000}) {
      const double depth = types.in == DType::f64 ? 760 : 108;
      HostCase test(problem_of(cols, types), 1);
      test.fill(
          [&](std::int64_t, std::int64_t j) { return -depth * static_cast<double>(j) / static_cast<double>(cols); });
      CHECK(test.check(2) == "");
    }
  }
}

TEST_CASE("the caller's rounding and flush-to-zero modes do not matter, and are kept") {
  HostCase test(problem_of(100, f32), 1);
  test.fill([](std::int64_t, std::int64_t j) { return -1.03 * static_cast<double>(j); });
  test.run();
  const std::string ordinary = test.output_bits();
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
  const unsigned changed = _mm_getcsr() & 0xffc0;
#endif
  const Problem problem = problem_of(100, f32);
  host::softmax(problem, test.rows(), MaskedRows::nan, 1);
#if defined(__x86_64__)
  const bool kept = (_mm_getcsr() & 0xffc0) == changed;
#else
  const bool kept = true;
#endif
  const int rounding = std::fegetround();
  std::fesetenv(&before);
  CHECK(kept);
  CHECK(rounding == FE_UPWARD);
  CHECK(test.output_bits() == ordinary);
}
