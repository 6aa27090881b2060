// What the suite compiles and runs: the one list that the generator of the kernels and the tests
// share. All of it comes out of `plan`, so a change of the plan changes what is tested.
#pragma once

#include <string>
#include <vector>

#include "plan/choice.hpp"

namespace jitsoftmax::host_test {

// Every pair of element types with both operations; the columns are still to be filled in.
[[nodiscard]] std::vector<Problem> all_types();

// Longest row that every kernel with Runtime columns is run at, from 1 on.
constexpr std::int64_t longest_runtime_row = 300;

// One kernel for a problem, in the forms that different alignments need.
struct NamedKernel {
  std::string name;  // "v2"
  plan::Bundle bundle;
};

// With Runtime columns: every family and named variant that serves the problem. Few different ones over all lengths,
// since the length is no part of them.
[[nodiscard]] std::vector<NamedKernel> runtime_kernels(const Problem& problem);

// Problems whose kernels have Static columns: both sides of every length at which the built-in choice
// changes its family or the way in which a row is laid over threads, for rows of every width of
// access.
[[nodiscard]] std::vector<Problem> threshold_problems();

// Problems of the tests of special values and long rows, which also have Static columns.
[[nodiscard]] std::vector<Problem> special_problems();

// What can run this problem: every kernel with Runtime columns that was compiled, and the built-in
// choice if it is one of special_problems().
[[nodiscard]] std::vector<NamedKernel> every_kernel(const Problem& problem);

// The few problems with which the mutation check runs.
[[nodiscard]] std::vector<Problem> mutation_problems();

// The built-in choice; it is the same for every architecture.
[[nodiscard]] plan::Bundle chosen(const Problem& problem);

}  // namespace jitsoftmax::host_test
