// Kernels touch the elements of their rows and nothing else, wherever these are.
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

constexpr std::int64_t count = 3;

bool same_bits(const Outcome& a, const Outcome& b, std::int64_t rows = count) {
  for (std::int64_t row = 0; row < rows; ++row) {
    if (!a.out.same_bits(row, b.out, row)) return false;
  }
  return true;
}

// All pairs of alignment, each with rows of one alignment and with rows that change theirs.
void every_phase(const Sample& rows, const NamedKernel& kernel) {
  CAPTURE(kernel.name);
  const Outcome aligned = run(rows, kernel.bundle, {}, seed());
  const int vector = plan::widest_vector(rows.problem);
  for (int in = 0; in < vector; ++in) {
    for (int out = 0; out < vector; ++out) {
      const std::int64_t whole = (vector - rows.problem.cols % vector) % vector;
      const Placement place{.in_phase = in,
                            .out_phase = out,
                            .in_gap = in % 2 == 0 ? whole : whole + 1,
                            .out_gap = out % 3 == 0 ? whole : whole + 1};
      const Outcome outcome = run(rows, kernel.bundle, place, seed());
      CHECK_MESSAGE(outcome.failure.empty(), outcome.failure);
      CHECK_MESSAGE(same_bits(aligned, outcome),
                    "other bits than aligned rows, input phase " << in << " output phase " << out);
    }
  }
}

TEST_CASE("every pair of alignments of input and output gives the same bits where that is asked for") {
  INFO("JITSOFTMAX_SEED=", seed());
  std::mt19937_64 random(seed());
  for (Problem problem : all_types()) {
    for (const std::int64_t cols : {5, 16, 79}) {
      problem.cols = cols;
      const Sample rows = random_sample(problem, count, random);
      for (const NamedKernel& kernel : runtime_kernels(problem, true)) {
        // One combination of everything takes long with the kernels of one element an access, for
        // which alignment is nothing.
        if (kernel.bundle.size() > 1 || cols == 5) every_phase(rows, kernel);
      }
    }
  }
  const Problem odd{.cols = 385, .in = DType::f16, .out = DType::f16};
  every_phase(random_sample(odd, count, random), {"built-in", chosen(odd, true)});
  report_counts();
}

TEST_CASE("rows that are further apart than they are long leave the padding untouched") {
  INFO("JITSOFTMAX_SEED=", seed());
  std::mt19937_64 random(seed());
  for (Problem problem : all_types()) {
    problem.cols = 5;
    const Sample rows = random_sample(problem, 7, random);
    for (const NamedKernel& kernel : every_kernel(problem)) {
      const Outcome outcome = run(rows, kernel.bundle, {.in_gap = 3, .out_gap = 3}, seed());
      CHECK_MESSAGE(outcome.failure.empty(), kernel.name << ": " << outcome.failure);
    }
  }
}

TEST_CASE("in place gives the same bits as out of place") {
  INFO("JITSOFTMAX_SEED=", seed());
  std::mt19937_64 random(seed());
  for (Problem problem : all_types()) {
    if (problem.in != problem.out) continue;
    for (const std::int64_t cols : {1, 33, 300}) {
      for (const Layout layout : {Layout::contiguous, Layout::strided}) {
        problem.cols = cols;
        problem.layout = layout;
        const std::int64_t inner = layout == Layout::strided ? count : 1;
        const Sample rows = random_sample(problem, count, random);
        for (const NamedKernel& kernel : every_kernel(problem)) {
          const Outcome apart = run(rows, kernel.bundle, {.in_gap = 1, .inner = inner}, seed());
          const Outcome in_place = run(rows, kernel.bundle, {.in_gap = 1, .inner = inner, .in_place = true}, seed());
          CHECK_MESSAGE(in_place.failure.empty(), kernel.name << ": " << in_place.failure);
          CHECK_MESSAGE(same_bits(apart, in_place),
                        kernel.name << ": other bits in place, " << plan::describe(problem));
        }
      }
    }
  }
}

TEST_CASE("the order of the threads changes no bit") {
  INFO("JITSOFTMAX_SEED=", seed());
  std::mt19937_64 random(seed());
  for (const std::int64_t cols : {33, 300}) {
    const Problem problem{.cols = cols};
    const Sample rows = random_sample(problem, count, random);
    for (const NamedKernel& kernel : every_kernel(problem)) {
      const Outcome first = run(rows, kernel.bundle, {}, seed());
      for (std::uint64_t other = 1; other <= 8; ++other) {
        CHECK(same_bits(first, run(rows, kernel.bundle, {}, seed() + other)));
      }
    }
  }
}

TEST_CASE("more rows than one dimension of a small grid counts") {
  INFO("JITSOFTMAX_SEED=", seed());
  std::mt19937_64 random(seed());
  const Problem problem{.cols = 4};
  for (const std::int64_t many : {65535, 65536, 65537}) {
    const Sample rows = random_sample(problem, many, random);
    const Outcome outcome = run(rows, chosen(problem), {}, seed());
    CHECK_MESSAGE(outcome.failure.empty(), outcome.failure);
  }
  report_counts();
}

TEST_CASE("no rows launch nothing, with null pointers") {
  const Problem problem{.cols = 5};
  CHECK_NOTHROW(launch(chosen(problem), problem, {}, MaskedRows::nan, seed()));
}

}  // namespace
}  // namespace jitsoftmax::host_test
