#include "host/expected.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace jitsoftmax::host_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Distance between neighbours of the format at `x`.
double spacing(double x, int mantissa_bits, int least_exponent) {
  const int exponent = x == 0 ? least_exponent : std::max(std::ilogb(x), least_exponent);
  return std::ldexp(1.0, exponent - mantissa_bits);
}

}  // namespace

std::vector<double> expected_row(const Problem& problem, const std::vector<double>& row, float scale,
                                 MaskedRows masked) {
  std::vector<long double> x;
  for (const double element : row) {
    if (problem.in == DType::f64) {
      x.push_back(static_cast<double>(scale) * element);
    } else {
      x.push_back(scale * static_cast<float>(element));
    }
  }
  const bool poisoned =
      std::any_of(x.begin(), x.end(), [](long double v) { return std::isnan(v) || (std::isinf(v) && v > 0); });
  if (poisoned) return std::vector<double>(row.size(), std::numeric_limits<double>::quiet_NaN());
  const long double max = *std::max_element(x.begin(), x.end());
  const bool log = problem.op == Op::log_softmax;
  if (std::isinf(max)) {
    const double masked_value =
        masked == MaskedRows::zero ? (log ? -infinity : 0) : std::numeric_limits<double>::quiet_NaN();
    return std::vector<double>(row.size(), masked_value);
  }
  long double sum = 0;
  for (const long double v : x) sum += std::exp(v - max);
  std::vector<double> result;
  for (const long double v : x) {
    result.push_back(static_cast<double>(log ? (v - max) - std::log(sum) : std::exp(v - max) / sum));
  }
  return result;
}

bool near(const plan::Specialization& kernel, const Problem& problem, double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  if (std::isnan(got)) return false;
  const double magnitude = std::abs(expected);
  const bool literal = kernel.family == plan::Family::looped && !kernel.config.blocked;
  const double terms = literal ? static_cast<double>(problem.cols) : 0;
  // The logarithm of a sum near 1 has the error of the sum, however small it is itself.
  const double rounding = problem.in == DType::f64 ? 2.3e-16 : 1.2e-7;
  const double floor = problem.op == Op::log_softmax ? (2 + terms) * rounding : 0;
  const double computed = std::max(problem.in == DType::f64 ? 1e-13 : 1e-5, terms * rounding) * magnitude + floor;
  if (problem.out == DType::f64) return std::abs(got - expected) <= computed;
  if (problem.out == DType::f32) return std::abs(got - expected) <= computed + 1.5e-45;

  const double ulp = problem.out == DType::f16 ? spacing(expected, 10, -14) : spacing(expected, 7, -126);
  const double rounded = std::nearbyint(expected / ulp) * ulp;
  const double largest = problem.out == DType::f16 ? 65504 : 0x1.fep127;
  if (std::abs(rounded) > largest) return std::isinf(got) || std::abs(got) == largest;
  return std::abs(got - rounded) <= ulp + floor;
}

}  // namespace jitsoftmax::host_test
