#include "tune/verify.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace jitsoftmax::tune {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
T load_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double magnitude = exponent == 31  ? (mantissa == 0 ? infinity : nan)
                           : exponent == 0 ? std::ldexp(mantissa, -24)
                                           : std::ldexp(mantissa + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double load(const std::byte* base, std::int64_t index, DType dtype) {
  const std::byte* const from = base + index * size_of(dtype);
  switch (dtype) {
    case DType::f16:
      return from_half(load_as<std::uint16_t>(from));
    case DType::f32:
      return static_cast<double>(load_as<float>(from));
    case DType::f64:
      return load_as<double>(from);
    case DType::bf16:
      return static_cast<double>(std::bit_cast<float>(std::uint32_t{load_as<std::uint16_t>(from)} << 16));
  }
  return nan;
}

// A 16-bit format, as far as rounding to it goes.
struct Half {
  int digits;          // of the fraction
  int least_exponent;  // of the smallest subnormal
  double largest;
};
constexpr Half half_of(DType dtype) { return dtype == DType::bf16 ? Half{7, -133, 0x1.fep127} : Half{10, -24, 65504}; }

// The distance from |value| to the next number of the format beyond it.
double ulp_step(double value, const Half& half) {
  const int exponent = value == 0 ? half.least_exponent : std::ilogb(value) - half.digits;
  return std::ldexp(1, std::max(exponent, half.least_exponent));
}

double round_to(double value, DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16: {
      if (!std::isfinite(value)) return value;
      const Half half = half_of(dtype);
      const double step = ulp_step(value, half);
      const double rounded = std::nearbyint(value / step) * step;
      return std::abs(rounded) > half.largest ? std::copysign(infinity, value) : rounded;
    }
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

// The error of one element over what is allowed.
double error_ratio(double got, double expected, const Problem& problem) {
  const double rounded = round_to(expected, problem.out);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : infinity;
  if (std::isinf(rounded) || !std::isfinite(got)) return got == rounded ? 0 : infinity;

  const bool is_log = problem.op == Op::log_softmax;
  const double scale = is_log ? std::max(1.0, std::abs(expected)) : std::abs(expected);
  switch (problem.out) {
    case DType::f16:
    case DType::bf16: {
      // Of the smaller of both, since a step below a power of two is half of the one above it.
      const double ulp = ulp_step(std::min(std::abs(got), std::abs(rounded)), half_of(problem.out));
      const double of_ulp = std::abs(got - rounded) / ulp;
      return is_log ? std::min(of_ulp, std::abs(got - expected) / (1e-5 * scale)) : of_ulp;
    }
    case DType::f64:
      return std::abs(got - expected) / (1e-13 * scale + std::numeric_limits<double>::denorm_min());
    default:
      return std::abs(got - expected) / (1e-5 * scale + 1.5e-45);
  }
}

// The reference of one row, in place: x becomes softmax(scale * x).
void reference_row(std::vector<double>& row, const Problem& problem, float scale, MaskedRows masked) {
  const bool is_log = problem.op == Op::log_softmax;
  double maximum = -infinity;
  bool poisoned = false;
  for (double& x : row) {
    // The product is rounded in the type that the library computes in.
    x = problem.in == DType::f64 ? x * static_cast<double>(scale) : static_cast<double>(static_cast<float>(x) * scale);
    poisoned = poisoned || std::isnan(x) || x == infinity;
    maximum = std::max(maximum, x);
  }
  if (poisoned || maximum == -infinity) {
    const double masked_value = is_log ? -infinity : 0;
    std::fill(row.begin(), row.end(), poisoned || masked == MaskedRows::nan ? nan : masked_value);
    return;
  }
  long double sum = 0;  // wider than f64: a long row's sum must not cost the reference its digits
  for (const double x : row) sum += static_cast<long double>(std::exp(x - maximum));
  const auto divisor = static_cast<double>(sum);
  const double log_divisor = std::log(divisor);
  for (double& x : row) x = is_log ? (x - maximum) - log_divisor : std::exp(x - maximum) / divisor;
}

// Rows of host memory, and where their elements are.
struct Placement {
  std::int64_t cols;
  std::int64_t inner;

  [[nodiscard]] std::int64_t at(std::int64_t row, std::int64_t col) const noexcept {
    return row / inner * cols * inner + row % inner + col * inner;
  }
};

// Reads a row and makes the reference of it.
void reference_of(std::vector<double>& row, std::int64_t r, const Problem& problem, const Rows& rows,
                  MaskedRows masked) {
  const Placement placement{problem.cols, rows.inner};
  for (std::int64_t j = 0; j < problem.cols; ++j) {
    row[static_cast<std::size_t>(j)] = load(static_cast<const std::byte*>(rows.in), placement.at(r, j), problem.in);
  }
  reference_row(row, problem, rows.scale, masked);
}

void compare(const void* out, std::int64_t index, double expected, const Problem& problem, Verdict& verdict) {
  const double got = load(static_cast<const std::byte*>(out), index, problem.out);
  const double ratio = error_ratio(got, expected, problem);
  ++verdict.elements;
  if (ratio > 1) ++verdict.wrong;
  if (ratio > verdict.ratio || verdict.elements == 1 || (ratio == verdict.ratio && index < verdict.index)) {
    verdict.ratio = ratio;
    verdict.index = index;
    verdict.got = got;
    verdict.expected = expected;
  }
}

Verdict together(const std::vector<Verdict>& verdicts) {
  Verdict total = verdicts.front();
  for (std::size_t p = 1; p < verdicts.size(); ++p) {
    const Verdict& part = verdicts[p];
    const bool worse = part.ratio > total.ratio || (part.ratio == total.ratio && part.index < total.index);
    const std::int64_t elements = total.elements + part.elements;
    const std::int64_t wrong = total.wrong + part.wrong;
    if (worse) total = part;
    total.elements = elements;
    total.wrong = wrong;
  }
  return total;
}

// How many threads share so many items. 0 of them: as many as there are cores.
std::size_t parts_of(std::int64_t count, int threads) {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::size_t>(std::min(threads > 0 ? threads : cores, count));
}

// work(part, first, last) in a thread each.
template <class Work>
void in_parts(std::int64_t count, std::size_t parts, const Work& work) {
  const auto n = static_cast<std::int64_t>(parts);
  std::vector<std::jthread> workers;
  for (std::int64_t p = 0; p < n; ++p) {
    const std::int64_t first = count / n * p + std::min(p, count % n);
    const std::int64_t last = first + count / n + (p < count % n ? 1 : 0);
    workers.emplace_back([&work, p, first, last] { work(static_cast<std::size_t>(p), first, last); });
  }
}

// A row for each part. Allocated here, where running out of memory can be reported.
std::vector<std::vector<double>> row_buffers(std::size_t parts, std::int64_t cols) {
  return {parts, std::vector<double>(static_cast<std::size_t>(cols))};
}

}  // namespace

Verdict verify(const Problem& problem, const Rows& rows, MaskedRows masked, int threads,
               const std::function<bool()>& stop) {
  if (rows.count == 0 || problem.cols == 0) return {};
  std::vector<Verdict> verdicts(parts_of(rows.count, threads));
  std::vector<std::vector<double>> buffers = row_buffers(verdicts.size(), problem.cols);
  const Placement placement{problem.cols, rows.inner};
  in_parts(rows.count, verdicts.size(), [&](std::size_t part, std::int64_t first, std::int64_t last) {
    std::vector<double>& row = buffers[part];
    for (std::int64_t r = first; r < last && !(stop && stop()); ++r) {
      reference_of(row, r, problem, rows, masked);
      for (std::int64_t j = 0; j < problem.cols; ++j) {
        compare(rows.out, placement.at(r, j), row[static_cast<std::size_t>(j)], problem, verdicts[part]);
      }
    }
  });
  return together(verdicts);
}

Reference::Reference(const Problem& problem, const Rows& rows, MaskedRows masked, int threads)
    : problem_(problem), expected_(static_cast<std::size_t>(rows.count * problem.cols)) {
  if (expected_.empty()) return;
  const std::size_t parts = parts_of(rows.count, threads);
  std::vector<std::vector<double>> buffers = row_buffers(parts, problem.cols);
  const Placement placement{problem.cols, rows.inner};
  in_parts(rows.count, parts, [&](std::size_t part, std::int64_t first, std::int64_t last) {
    std::vector<double>& row = buffers[part];
    for (std::int64_t r = first; r < last; ++r) {
      reference_of(row, r, problem, rows, masked);
      for (std::int64_t j = 0; j < problem.cols; ++j) {
        expected_[static_cast<std::size_t>(placement.at(r, j))] = row[static_cast<std::size_t>(j)];
      }
    }
  });
}

Verdict Reference::compare(const void* out, int threads) const {
  if (expected_.empty()) return {};
  const auto elements = static_cast<std::int64_t>(expected_.size());
  std::vector<Verdict> verdicts(parts_of(elements, threads));
  in_parts(elements, verdicts.size(), [&](std::size_t part, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      tune::compare(out, i, expected_[static_cast<std::size_t>(i)], problem_, verdicts[part]);
    }
  });
  return together(verdicts);
}

}  // namespace jitsoftmax::tune
