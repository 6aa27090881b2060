#include "host/trial.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "host/executor.hpp"
#include "host/launch.hpp"
#include "reference.hpp"

namespace jitsoftmax::host_test {
namespace {

// What the library promises. The recurrence to the letter is exempt: it sums the columns one after
// the other, and each may add a rounding error of the sum.
bool near(const plan::Specialization& kernel, const Problem& problem, double got, double expected) {
  if (testing::is_close(problem, got, expected)) return true;
  const bool literal = kernel.family == plan::Family::looped && !kernel.config.blocked;
  if (!literal || !std::isfinite(expected)) return false;
  const double drift = static_cast<double>(problem.cols) * (problem.in == DType::f64 ? 2.3e-16 : 1.2e-7);
  const double relative_to = problem.op == Op::log_softmax ? 1 + std::abs(expected) : std::abs(expected);
  return std::abs(got - expected) <= drift * relative_to + testing::spacing(problem.out, expected);
}

std::string differences(const Sample& sample, const plan::Specialization& kernel, const Matrix& out) {
  for (std::size_t row = 0; row < sample.rows.size(); ++row) {
    for (std::size_t col = 0; col < sample.rows[row].size(); ++col) {
      const double got = out.get(static_cast<std::int64_t>(row), static_cast<std::int64_t>(col));
      const double expected = sample.expected[row][col];
      if (near(kernel, sample.problem, got, expected)) continue;
      std::ostringstream text;
      text.precision(std::numeric_limits<double>::max_digits10);
      text << "row " << row << " column " << col << " is " << got << " instead of " << expected;
      return text.str();
    }
  }
  return {};
}

std::string untouched(const Matrix& in, const Matrix* out) {
  if (!in.gaps_untouched()) return "something beside the rows of the input was written";
  if (out != nullptr && !out->gaps_untouched()) return "something beside the rows of the output was written";
  return {};
}

}  // namespace

Sample sample(const Problem& problem, std::int64_t rows, const Values& values, float scale, MaskedRows masked) {
  Sample result{.problem = problem, .rows = {}, .expected = {}, .scale = scale, .masked = masked};
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<double>& elements = result.rows.emplace_back();
    for (std::int64_t col = 0; col < problem.cols; ++col) {
      elements.push_back(testing::round_to(problem.in, values(row, col)));
    }
    testing::reference_row(problem, scale, masked, result.expected.emplace_back(elements).data());
  }
  return result;
}

Sample random_sample(const Problem& problem, std::int64_t rows, std::mt19937_64& random, float scale) {
  std::normal_distribution<double> normal;
  constexpr double masked = -std::numeric_limits<double>::infinity();
  return sample(
      problem, rows,
      [&](std::int64_t row, std::int64_t) {
        const double value = normal(random);
        switch (row % 3) {
          case 0:
            return value;
          case 1:
            return value > 1.5 ? masked : 1000 + value;
          default:
            return 30 * value;
        }
      },
      scale);
}

Outcome run(const Sample& sample, const plan::Bundle& bundle, const Placement& place, std::uint64_t seed) {
  const Problem& problem = sample.problem;
  const auto count = static_cast<std::int64_t>(sample.rows.size());
  const auto matrix = [&](DType type, std::int64_t phase, std::int64_t gap) {
    return Matrix(type, {.rows = count,
                         .cols = problem.cols,
                         .stride = problem.cols * place.inner + gap,
                         .phase = phase,
                         .inner = place.inner});
  };
  Matrix in = matrix(problem.in, place.in_phase, place.in_gap);
  for (std::int64_t row = 0; row < count; ++row) {
    const auto& elements = sample.rows[static_cast<std::size_t>(row)];
    for (std::int64_t col = 0; col < problem.cols; ++col) in.set(row, col, elements[static_cast<std::size_t>(col)]);
  }
  std::optional<Matrix> separate;
  if (!place.in_place) separate = matrix(problem.out, place.out_phase, place.out_gap);
  Matrix& out = separate ? *separate : in;
  const Rows rows{.out = out.data(),
                  .in = in.data(),
                  .count = count,
                  .out_stride = out.shape().stride,
                  .in_stride = in.shape().stride,
                  .inner = place.inner,
                  .scale = sample.scale};

  const plan::Specialization* kernel = &bundle[plan::select(bundle, rows)];
  std::string failure;
  try {
    kernel = &launch(bundle, problem, rows, sample.masked, seed);
    failure = differences(sample, *kernel, out);
    if (failure.empty()) failure = untouched(in, separate ? &*separate : nullptr);
  } catch (const ExecutionError& error) {
    failure = error.what();
  }
  if (!failure.empty()) {
    std::ostringstream text;
    text << plan::name_expression(*kernel) << " for " << plan::describe(problem) << ", " << count << " rows, scale "
         << sample.scale << ", masked rows " << (sample.masked == MaskedRows::zero ? "zero" : "nan") << ", input phase "
         << place.in_phase << " gap " << place.in_gap << ", output phase " << place.out_phase << " gap "
         << place.out_gap << ", inner " << place.inner << (place.in_place ? ", in place" : "") << ": " << failure
         << "; order of the threads " << seed;
    failure = text.str();
  }
  return {std::move(failure), separate ? std::move(*separate) : std::move(in)};
}

}  // namespace jitsoftmax::host_test
