// Trial: one launch of a kernel on buffers of exactly the right size, compared with the definition.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "host/matrix.hpp"
#include "plan/choice.hpp"

namespace jitsoftmax::host_test {

// Rows to run kernels on, with what they are to become: computed once for many kernels.
struct Sample {
  Problem problem;
  std::vector<std::vector<double>> rows;  // values of problem.in
  std::vector<std::vector<double>> expected;
  float scale = 1;
  MaskedRows masked = MaskedRows::nan;
};

// Element (row, col) of a sample, before it is rounded to the type.
using Values = std::function<double(std::int64_t row, std::int64_t col)>;
[[nodiscard]] Sample sample(const Problem& problem, std::int64_t rows, const Values& values, float scale = 1,
                            MaskedRows masked = MaskedRows::nan);

// Rows of ordinary kinds in turn: normal values, normal values far from zero with -inf among them,
// values that are far apart.
[[nodiscard]] Sample random_sample(const Problem& problem, std::int64_t rows, std::mt19937_64& random, float scale = 1);

// Where the rows are in memory, in elements.
struct Placement {
  std::int64_t in_phase = 0;
  std::int64_t out_phase = 0;
  std::int64_t in_gap = 0;  // between rows
  std::int64_t out_gap = 0;
  std::int64_t inner = 1;
  bool in_place = false;  // as the input is placed
};

struct Outcome {
  std::string failure;  // empty if every element is near what it should be and nothing else was touched
  Matrix out;
};

// Does not throw for what a kernel does wrong: that is a failure, which names everything that is
// needed to see it again.
[[nodiscard]] Outcome run(const Sample& sample, const plan::Bundle& bundle, const Placement& place, std::uint64_t seed);

}  // namespace jitsoftmax::host_test
