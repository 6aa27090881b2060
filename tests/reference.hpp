// The independent answer: softmax in long double with the standard library's exp, element types
// converted by arithmetic rather than bits, and the tolerances that results are held to. Shares no
// code with the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <limits>
#include <string>
#include <vector>

namespace jitsoftmax::testing {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// What there is to know of a binary floating-point format.
struct Format {
  int precision;     // significant bits, with the leading one
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest finite one
};

[[nodiscard]] constexpr Format format_of(DType type) noexcept {
  switch (type) {
    case DType::f16:
      return {11, -14, 15};
    case DType::bf16:
      return {8, -126, 127};
    case DType::f32:
      return {24, -126, 127};
    case DType::f64:
      break;
  }
  return {53, -1022, 1023};
}

// The distance between neighbours of the type around x: of its binade, or of the subnormals.
[[nodiscard]] inline double spacing(DType type, double x) {
  const Format format = format_of(type);
  const int exponent = x == 0 ? format.min_exponent : std::max(std::ilogb(x), format.min_exponent);
  return std::ldexp(1.0, std::min(exponent, format.max_exponent) - (format.precision - 1));
}

// x rounded to the type, to nearest, ties to even; beyond its range, an infinity.
[[nodiscard]] inline double round_to(DType type, double x) {
  if (type == DType::f64 || !std::isfinite(x) || x == 0) return x;
  const double unit = spacing(type, x);
  const double rounded = std::nearbyint(x / unit) * unit;
  const Format format = format_of(type);
  return std::abs(rounded) >= std::ldexp(1.0, format.max_exponent + 1) ? std::copysign(infinity, x) : rounded;
}

// The bits of round_to(type, x), for a type of 16 bits.
[[nodiscard]] inline std::uint16_t bits16_of(DType type, double x) {
  const Format format = format_of(type);
  const int mantissa = format.precision - 1;
  const unsigned sign = std::signbit(x) ? 0x8000U : 0U;
  const unsigned special = static_cast<unsigned>(2 * format.max_exponent + 1) << mantissa;
  if (std::isnan(x)) return static_cast<std::uint16_t>(special | (1U << (mantissa - 1)));
  const double magnitude = std::abs(round_to(type, x));
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | special);
  const double unit = spacing(type, magnitude);
  // Counted in units: the fraction, and the leading one where there is one.
  const auto count = static_cast<unsigned>(magnitude / unit);
  const bool normal = count >> mantissa != 0;
  const unsigned biased = normal ? static_cast<unsigned>(std::ilogb(magnitude) + format.max_exponent) : 0U;
  return static_cast<std::uint16_t>(sign | (biased << mantissa) | (count & ((1U << mantissa) - 1)));
}

[[nodiscard]] inline double value_of16(DType type, std::uint16_t bits) {
  const Format format = format_of(type);
  const int mantissa = format.precision - 1;
  const int biased = (bits & 0x7fff) >> mantissa;
  const int fraction = bits & ((1 << mantissa) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (biased == 2 * format.max_exponent + 1) return fraction != 0 ? not_a_number : sign * infinity;
  const int significand = biased != 0 ? fraction | (1 << mantissa) : fraction;
  return sign * std::ldexp(significand, std::max(biased - format.max_exponent, format.min_exponent) - mantissa);
}

// Element `index` of an array of the type.
inline void write(DType type, void* array, std::int64_t index, double x) {
  char* at = static_cast<char*>(array) + index * size_of(type);
  if (type == DType::f64) {
    std::memcpy(at, &x, sizeof x);
  } else if (type == DType::f32) {
    const auto narrow = static_cast<float>(x);
    std::memcpy(at, &narrow, sizeof narrow);
  } else {
    const std::uint16_t bits = bits16_of(type, x);
    std::memcpy(at, &bits, sizeof bits);
  }
}

[[nodiscard]] inline double read(DType type, const void* array, std::int64_t index) {
  const char* at = static_cast<const char*>(array) + index * size_of(type);
  if (type == DType::f64) {
    double x = 0;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  if (type == DType::f32) {
    float x = 0;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return value_of16(type, bits);
}

// Where element j of row r is, as problem.hpp defines it; a stride of 0 is "packed".
[[nodiscard]] inline std::int64_t index_of(const Problem& problem, std::int64_t stride, std::int64_t inner,
                                           std::int64_t row, std::int64_t j) {
  if (stride == 0) stride = problem.cols * inner;
  return (row / inner) * stride + j * inner + (row % inner);
}

// Elements from the first to the last that rows with this stride own.
[[nodiscard]] inline std::int64_t extent(const Problem& problem, std::int64_t stride, std::int64_t inner,
                                         std::int64_t count) {
  if (problem.cols == 0 || count == 0) return 0;
  const std::int64_t last_slab = (count - 1) / inner * inner;
  return index_of(problem, stride, inner, last_slab + std::min(inner, count - last_slab) - 1, problem.cols - 1) + 1;
}

// What the rows hold now, in double: element j of row r at r * cols + j.
[[nodiscard]] inline std::vector<double> outputs(const Problem& problem, const Rows& rows) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows.count * problem.cols));
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::int64_t j = 0; j < problem.cols; ++j) {
      values.push_back(read(problem.out, rows.out, index_of(problem, rows.out_stride, rows.inner, r, j)));
    }
  }
  return values;
}

// The right answer for one row of inputs, scaled in place.
inline void reference_row(const Problem& problem, float scale, MaskedRows masked, double* x) {
  long double maximum = -infinity;
  bool poisoned = false;
  for (std::int64_t j = 0; j < problem.cols; ++j) {
    x[j] = problem.in == DType::f64 ? x[j] * static_cast<double>(scale)
                                    : static_cast<double>(static_cast<float>(x[j]) * scale);
    poisoned = poisoned || std::isnan(x[j]) || x[j] == infinity;
    maximum = std::max(maximum, static_cast<long double>(x[j]));
  }
  const bool log = problem.op == Op::log_softmax;
  if (poisoned || maximum == -infinity) {
    const double masked_value = masked == MaskedRows::nan ? not_a_number : log ? -infinity : 0.0;
    for (std::int64_t j = 0; j < problem.cols; ++j) x[j] = poisoned ? not_a_number : masked_value;
    return;
  }
  // Without the maximum's own 1, which would hide what is far below it.
  long double rest = -1;
  long double lost = 0;
  for (std::int64_t j = 0; j < problem.cols; ++j) {
    const long double term = std::exp(static_cast<long double>(x[j]) - maximum) - lost;
    const long double next = rest + term;
    lost = (next - rest) - term;
    rest = next;
  }
  for (std::int64_t j = 0; j < problem.cols; ++j) {
    const long double shifted = static_cast<long double>(x[j]) - maximum;
    x[j] = static_cast<double>(log ? shifted - std::log1p(rest) : std::exp(shifted) / (1 + rest));
  }
}

// The right answers for the inputs of `rows`, not rounded to the output's type; laid out as outputs().
// Call it before an in-place softmax.
[[nodiscard]] inline std::vector<double> reference_softmax(const Problem& problem, const Rows& rows,
                                                           MaskedRows masked = MaskedRows::nan) {
  std::vector<double> values(static_cast<std::size_t>(rows.count * problem.cols));
  for (std::int64_t r = 0; r < rows.count; ++r) {
    double* row = values.data() + r * problem.cols;
    for (std::int64_t j = 0; j < problem.cols; ++j) {
      row[j] = read(problem.in, rows.in, index_of(problem, rows.in_stride, rows.inner, r, j));
    }
    reference_row(problem, rows.scale, masked, row);
  }
  return values;
}

// Whether `got` is as near to the reference as the library promises:
//
//   f32        |error| <= 1e-5 |reference| + 1.5e-45
//   f64        |error| <= 1e-13 |reference| + 5e-324
//   f16, bf16  1 ulp of the rounded reference
//
// and, for log_softmax, an absolute 1e-6 (f64: 1e-14) besides: (x - m) - log(d) can know log(d) no
// better than d's own rounding lets it. NaN and infinities must be met exactly.
[[nodiscard]] inline bool is_close(const Problem& problem, double got, double reference) {
  const DType out = problem.out;
  const bool wide = problem.in == DType::f64;
  const double absolute = problem.op == Op::log_softmax ? (wide ? 1e-14 : 1e-6) : 0.0;
  if (std::isnan(reference)) return std::isnan(got);
  if (std::isnan(got)) return false;
  if (out == DType::f64)
    return got == reference || std::abs(got - reference) <= 1e-13 * std::abs(reference) + absolute + 5e-324;
  const double rounded = round_to(out, reference);
  if (got == rounded) return true;
  if (std::isinf(reference)) return false;
  if (out == DType::f32) return std::abs(got - reference) <= 1e-5 * std::abs(reference) + absolute + 1.5e-45;
  // Next to the end of the range, an infinity stands for the first number beyond it.
  const double beyond = std::ldexp(1.0, format_of(out).max_exponent + 1);
  const auto finite = [&](double x) { return std::isinf(x) ? std::copysign(beyond, x) : x; };
  return std::abs(finite(got) - finite(rounded)) <= spacing(out, finite(rounded)) + absolute;
}

// Empty if all are close, else a description of the first that is not.
[[nodiscard]] inline std::string check_close(const Problem& problem, const std::vector<double>& got,
                                             const std::vector<double>& reference) {
  if (got.size() != reference.size()) {
    return "sizes differ: " + std::to_string(got.size()) + " and " + std::to_string(reference.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (is_close(problem, got[i], reference[i])) continue;
    const auto cols = static_cast<std::size_t>(problem.cols);
    char text[160];
    std::snprintf(text, sizeof text, "row %zu column %zu: %.17g instead of %.17g, relative error %.3g", i / cols,
                  i % cols, got[i], reference[i], std::abs(got[i] / reference[i] - 1));
    return text;
  }
  return {};
}

}  // namespace jitsoftmax::testing
