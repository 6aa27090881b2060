// Conversions and the exponential, in each instruction set that this CPU runs.
#include <doctest/doctest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <vector>

#include "host/kernels.hpp"
#include "host/variants.hpp"
#include "reference.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

}  // namespace

TEST_CASE("every 16-bit value is read exactly") {
  constexpr std::int64_t count = 65536;
  std::vector<std::uint16_t> bits(count);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  for (const host::Kernels* kernels : host::usable_kernels()) {
    for (const DType type : {DType::f16, DType::bf16}) {
      std::vector<float> values(count);
      kernels->element[static_cast<int>(type)].load(values.data(), bits.data(), count, 1);
      for (std::size_t i = 0; i < bits.size(); ++i) {
        REQUIRE(same(static_cast<double>(values[i]), value_of16(type, bits[i])));
        REQUIRE(std::signbit(values[i]) == (bits[i] >> 15 != 0));
      }
    }
  }
}

TEST_CASE("16-bit values are written rounded to nearest even") {
  // Every value, the middle between it and the next, and the floats on both sides of that.
  for (const DType type : {DType::f16, DType::bf16}) {
    std::vector<float> values;
    for (unsigned i = 0; i < 65535; ++i) {
      const double here = value_of16(type, static_cast<std::uint16_t>(i));
      const double there = value_of16(type, static_cast<std::uint16_t>(i + 1));
      const double largest = std::ldexp(1.0, format_of(type).max_exponent) * 2;
      const double next = std::isinf(there) && !std::isnan(here) ? std::copysign(largest, here) : there;
      const auto middle = static_cast<float>(here / 2 + next / 2);
      for (const float x :
           {static_cast<float>(here), std::nextafter(middle, -INFINITY), middle, std::nextafter(middle, INFINITY)}) {
        values.push_back(x);
      }
    }
    for (const float x : {FLT_MAX, -FLT_MAX, 65536.0F, 1e9F}) values.push_back(x);
    // NaNs that rounding would carry into the sign, or to infinity.
    for (const std::uint32_t nan : {0x7fffffffU, 0xffffffffU, 0x7f800001U}) values.push_back(std::bit_cast<float>(nan));
    const auto count = static_cast<std::int64_t>(values.size());
    values.resize(values.size() + host::group_lanes);
    for (const host::Kernels* kernels : host::usable_kernels()) {
      std::vector<std::uint16_t> bits(static_cast<std::size_t>(count));
      kernels->element[static_cast<int>(type)].store[0](bits.data(), values.data(), count, {0, 1}, false);
      for (std::size_t i = 0; i < bits.size(); ++i) {
        const auto x = static_cast<double>(values[i]);
        INFO("of " << x);
        if (std::isnan(x)) {
          REQUIRE(std::isnan(value_of16(type, bits[i])));
        } else {
          REQUIRE(bits[i] == bits16_of(type, x));
        }
      }
    }
  }
}

TEST_CASE("the exponential is within 1.5 ulp, exact at its ends") {
  constexpr std::int64_t groups = 16384;
  constexpr std::size_t count = groups * host::group_lanes;
  std::vector<float> x(count);
  std::vector<double> wide(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count - 1);
    x[i] = static_cast<float>(-106 * share);
    wide[i] = -750 * share;
  }
  x[count - 1] = -INFINITY;
  wide[count - 1] = -infinity;
  for (const host::Kernels* kernels : host::usable_kernels()) {
    std::vector<float> got = x;
    const double sum = kernels->accumulator[0].sum(got.data(), groups, 0, true, nullptr);
    double expected_sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double expected = std::exp(static_cast<double>(x[i]));
      expected_sum += expected;
      REQUIRE(std::abs(static_cast<double>(got[i]) - expected) <= 1.5 * spacing(DType::f32, expected));
    }
    CHECK(sum == doctest::Approx(expected_sum).epsilon(1e-7));
    CHECK(got[0] == 1);
    CHECK(got[count - 1] == 0);

    std::vector<double> got_wide = wide;
    kernels->accumulator[1].sum(got_wide.data(), groups, 0, true, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
      const long double expected = std::exp(static_cast<long double>(wide[i]));
      REQUIRE(std::abs(static_cast<long double>(got_wide[i]) - expected) <=
              1.5L * static_cast<long double>(spacing(DType::f64, static_cast<double>(expected))));
    }
    CHECK(got_wide[0] == 1);
    CHECK(got_wide[count - 1] == 0);
  }
}
