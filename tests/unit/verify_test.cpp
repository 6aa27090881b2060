// --verify: right results pass, and an error a little above what is allowed is found, wherever it is.
#include "tools/verify.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// A finished result, as `verify` sees it.
template <typename In, typename Out>
struct Case {
  std::vector<In> in;
  std::vector<Out> out;
  Split split;
  Op op = Op::softmax;
  float scale = 1;

  [[nodiscard]] Work work(DType in_type, DType out_type) {
    Work w;
    w.split = split;
    w.problem.cols = split.cols;
    w.problem.in = in_type;
    w.problem.out = out_type;
    w.problem.op = op;
    w.problem.layout = split.inner > 1 ? Layout::strided : Layout::contiguous;
    w.scale = scale;
    w.in = reinterpret_cast<const std::byte*>(in.data());
    w.out = reinterpret_cast<std::byte*>(out.data());
    return w;
  }
};

Verdict verify_f32(const std::vector<float>& in, const std::vector<float>& out, Op op = Op::softmax, float scale = 1,
                   MaskedRows masked = MaskedRows::nan) {
  Case<float, float> c{in, out, {1, static_cast<std::int64_t>(in.size()), 1}, op, scale};
  return verify(c.work(DType::f32, DType::f32), masked);
}

Verdict verify_f64(const std::vector<double>& in, const std::vector<double>& out, Op op = Op::softmax) {
  Case<double, double> c{in, out, {1, static_cast<std::int64_t>(in.size()), 1}, op, 1};
  return verify(c.work(DType::f64, DType::f64), MaskedRows::nan);
}

// 0x3400 is 0.25, 0x3a00 is 0.75, 0x3800 is 0.5, 0x3c00 is 1.
Verdict verify_f16(const std::vector<std::uint16_t>& in, const std::vector<std::uint16_t>& out, Op op = Op::softmax) {
  Case<std::uint16_t, std::uint16_t> c{in, out, {1, static_cast<std::int64_t>(in.size()), 1}, op, 1};
  return verify(c.work(DType::f16, DType::f16), MaskedRows::nan);
}

}  // namespace

TEST_CASE("known values are right, and wrong ones are wrong") {
  const auto ln3 = static_cast<float>(std::log(3.0));
  CHECK(verify_f32({0, ln3}, {0.25F, 0.75F}).wrong == 0);
  CHECK(verify_f32({0, ln3}, {0.25F, 0.75F}).elements == 2);
  CHECK(verify_f32({0, ln3}, {0.75F, 0.25F}).wrong == 2);
  CHECK(verify_f32({-60000, -60001}, {0.7310586F, 0.2689414F}).wrong == 0);
  CHECK(verify_f32({0, -100}, {1, 3.7835e-44F}).wrong == 0);
  CHECK(verify_f32({0, -100}, {1, 0}).wrong == 1);  // a subnormal that was flushed
  CHECK(verify_f64({1, 1, 1e100}, {0, 0, 1}).wrong == 0);
  CHECK(verify_f32({5}, {1}).wrong == 0);
}

TEST_CASE("scale multiplies the input, in the type that computes") {
  const auto ln3 = static_cast<float>(std::log(3.0));
  CHECK(verify_f32({0, 2 * ln3}, {0.25F, 0.75F}, Op::softmax, 0.5F).wrong == 0);
  CHECK(verify_f32({0, 2 * ln3}, {0.25F, 0.75F}, Op::softmax, 1).wrong == 2);
  // Rounding these products moves the result by 1e-4, where 1e-5 is allowed.
  const float x = 10000.3F;
  const float y = 10000.1F;
  const float scale = 1.7F;
  const double rounded = static_cast<double>(x * scale) - static_cast<double>(y * scale);
  const double exact = (static_cast<double>(x) - static_cast<double>(y)) * static_cast<double>(scale);
  REQUIRE(std::abs(rounded - exact) > 1e-4);
  const auto first = static_cast<float>(1 / (1 + std::exp(-rounded)));
  CHECK(verify_f32({x, y}, {first, 1 - first}, Op::softmax, scale).wrong == 0);
}

TEST_CASE("an error just above the tolerance is found, one just below is not") {
  const double third = 1.0 / 3;
  const auto f32 = [&](double relative) {
    return verify_f32(
        {1, 1, 1}, {static_cast<float>(third), static_cast<float>(third * (1 + relative)), static_cast<float>(third)});
  };
  CHECK(f32(0.9e-5).wrong == 0);
  CHECK(f32(1.1e-5).wrong == 1);
  CHECK(f32(-1.1e-5).wrong == 1);
  const auto f64 = [&](double relative) { return verify_f64({1, 1, 1}, {third, third, third * (1 + relative)}); };
  CHECK(f64(0.9e-13).wrong == 0);
  CHECK(f64(1.1e-13).wrong == 1);
  CHECK(f64(1.1e-13).index == 2);
}

TEST_CASE("f16 is within one step of the rounded reference, also across a power of two") {
  CHECK(verify_f16({0, 0, 0, 0}, {0x3400, 0x3400, 0x3401, 0x33ff}).wrong == 0);
  CHECK(verify_f16({0, 0, 0, 0}, {0x3400, 0x3400, 0x3402, 0x3400}).wrong == 1);
  CHECK(verify_f16({0, 0, 0, 0}, {0x3400, 0x3400, 0x33fe, 0x3400}).wrong == 1);
  // exp(-15) = 3.06e-7 is 5.13 steps of 2^-24: a subnormal that must be there.
  CHECK(verify_f16({0x0000, 0xcb80}, {0x3c00, 0x0005}).wrong == 0);
  CHECK(verify_f16({0x0000, 0xcb80}, {0x3c00, 0x0007}).wrong == 1);
  CHECK(verify_f16({0x0000, 0xcb80}, {0x3c00, 0x0000}).wrong == 1);
  CHECK(verify_f16({0x0000, 0x7c00}, {0x7e00, 0x7e00}).wrong == 0);  // +inf: NaN
}

TEST_CASE("log_softmax has an absolute error below one and a relative one above") {
  const auto log_third = static_cast<float>(-std::log(3.0));
  CHECK(verify_f32({1, 1, 1}, {log_third, log_third, log_third}, Op::log_softmax).wrong == 0);
  CHECK(verify_f32({1, 1, 1}, {log_third, log_third, log_third - 2e-5F}, Op::log_softmax).wrong == 1);
  // log(1 / (1 + exp(-20))) = -2.06e-9; 0 is what f32 can know.
  CHECK(verify_f32({20, 0}, {0, -20}, Op::log_softmax).wrong == 0);
  CHECK(verify_f32({20, 0}, {-2e-5F, -20}, Op::log_softmax).wrong == 1);
  CHECK(verify_f32({0, -10000}, {0, -10000.05F}, Op::log_softmax).wrong == 0);
  CHECK(verify_f32({0, -10000}, {0, -10000.2F}, Op::log_softmax).wrong == 1);
  CHECK(verify_f16({0, 0}, {0xb98c, 0xb98d}, Op::log_softmax).wrong == 0);  // -ln 2 = -0.6931
  CHECK(verify_f16({0, 0}, {0xb98c, 0xb98f}, Op::log_softmax).wrong == 1);
}

TEST_CASE("NaN, infinities and masked rows have to be where the reference has them") {
  CHECK(verify_f32({not_a_number, 0}, {not_a_number, not_a_number}).wrong == 0);
  CHECK(verify_f32({not_a_number, 0}, {not_a_number, 1}).wrong == 1);
  CHECK(verify_f32({not_a_number, -inf, -inf}, {not_a_number, not_a_number, not_a_number}, Op::softmax, 1,
                   MaskedRows::zero)
            .wrong == 0);
  CHECK(verify_f32({0, inf}, {not_a_number, not_a_number}).wrong == 0);
  CHECK(verify_f32({0, inf}, {0, 1}).wrong == 2);
  CHECK(verify_f32({0, 0}, {0.5F, not_a_number}).wrong == 1);
  CHECK(verify_f32({0, 0}, {0.5F, inf}).wrong == 1);
  CHECK(verify_f32({0, -inf}, {1, 0}).wrong == 0);
  CHECK(verify_f32({0, -inf}, {1, 1e-30F}).wrong == 1);
  CHECK(verify_f32({0, -inf}, {0, -inf}, Op::log_softmax).wrong == 0);
  CHECK(verify_f32({0, -inf}, {0, -1e30F}, Op::log_softmax).wrong == 1);
  const float largest = std::numeric_limits<float>::max();
  CHECK(verify_f32({largest, -largest}, {1, 0}).wrong == 0);
  CHECK(verify_f32({largest, -largest}, {0, -inf}, Op::log_softmax).wrong == 0);

  CHECK(verify_f32({-inf, -inf}, {not_a_number, not_a_number}).wrong == 0);
  CHECK(verify_f32({-inf, -inf}, {0, 0}).wrong == 2);
  CHECK(verify_f32({-inf, -inf}, {0.5F, 0.5F}).wrong == 2);
  CHECK(verify_f32({-inf, -inf}, {0, 0}, Op::softmax, 1, MaskedRows::zero).wrong == 0);
  CHECK(verify_f32({-inf, -inf}, {not_a_number, not_a_number}, Op::softmax, 1, MaskedRows::zero).wrong == 2);
  CHECK(verify_f32({-inf, -inf}, {-inf, -inf}, Op::log_softmax, 1, MaskedRows::zero).wrong == 0);
  CHECK(verify_f32({-inf, -inf}, {0, 0}, Op::log_softmax, 1, MaskedRows::zero).wrong == 2);
  CHECK(std::isinf(verify_f32({0, 0}, {0.5F, not_a_number}).ratio));
}

TEST_CASE("one planted error in a large array is found at its place, whatever the axis and the threads") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  for (const Split split : {Split{37, 19, 1}, Split{5, 19, 7}, Split{1, 300, 11}, Split{2, 1, 3}}) {
    const auto size = static_cast<std::size_t>(split.outer * split.cols * split.inner);
    Case<float, float> c{std::vector<float>(size), std::vector<float>(size), split, Op::softmax, 1};
    for (float& x : c.in) x = normal(random);
    // An own serial softmax, through the index formula of Rows.
    for (std::int64_t o = 0; o < split.outer; ++o) {
      for (std::int64_t i = 0; i < split.inner; ++i) {
        const auto at = [&](std::int64_t j) {
          return static_cast<std::size_t>((o * split.cols + j) * split.inner + i);
        };
        double sum = 0;
        for (std::int64_t j = 0; j < split.cols; ++j) sum += std::exp(static_cast<double>(c.in[at(j)]));
        for (std::int64_t j = 0; j < split.cols; ++j) {
          c.out[at(j)] = static_cast<float>(std::exp(static_cast<double>(c.in[at(j)])) / sum);
        }
      }
    }
    for (const int threads : {1, 2, 3, 64}) {
      const Verdict right = verify(c.work(DType::f32, DType::f32), MaskedRows::nan, threads);
      CHECK(right.wrong == 0);
      CHECK(right.elements == static_cast<std::int64_t>(size));
      CHECK(right.ratio < 0.1);
      const std::size_t at = random() % size;
      const float before = c.out[at];
      c.out[at] *= 1.0001F;
      const Verdict planted = verify(c.work(DType::f32, DType::f32), MaskedRows::nan, threads);
      CHECK(planted.wrong == 1);
      CHECK(planted.index == static_cast<std::int64_t>(at));
      CHECK(planted.got == static_cast<double>(c.out[at]));
      CHECK(planted.expected == doctest::Approx(static_cast<double>(before)).epsilon(1e-6));
      // A reference that is kept says the same.
      Rows rows;
      rows.in = c.in.data();
      rows.count = split.outer * split.inner;
      rows.inner = split.inner;
      const Problem problem = c.work(DType::f32, DType::f32).problem;
      const Verdict again = tune::Reference(problem, rows, MaskedRows::nan, threads).compare(c.out.data(), threads);
      CHECK(again.wrong == 1);
      CHECK(again.elements == planted.elements);
      CHECK(again.index == planted.index);
      CHECK(again.expected == planted.expected);
      CHECK(again.ratio == planted.ratio);
      c.out[at] = before;
    }
  }
}

TEST_CASE("a long row's reference does not drift") {
  // One 0 and n times -0.1: the sum is known without adding up.
  const std::size_t n = std::size_t{1} << 22;
  const double small = std::exp(-0.1);
  const double sum = 1 + static_cast<double>(n) * small;
  std::vector<double> in(n + 1, -0.1);
  std::vector<double> out(n + 1, small / sum);
  in[0] = 0;
  out[0] = 1 / sum;
  CHECK(verify_f64(in, out).wrong == 0);
}
