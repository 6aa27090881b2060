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
[[nodiscard]] std::vector<NamedKernel> runtime_kernels(const Problem& problem, bool deterministic = false);

// Problems whose kernels have Static columns: both sides of every length at which the built-in choice
// changes its family or the way in which a row is laid over threads; where it is to be deterministic, for rows
// of every width of access.
[[nodiscard]] std::vector<Problem> threshold_problems(bool deterministic);

// Kernels that hold a row between one read and one write in every way there is, whether the built-in choice makes
// use of it or not, with few threads: in parts of a warp, in blocks and in clusters; as numbers, as packets, or in
// shared memory. Of every way there are rows that just fit and rows that leave threads and blocks without a packet.
struct HeldCase {
  Problem problem;
  NamedKernel peeled;         // with the one for aligned rows, where there is one
  NamedKernel deterministic;  // the same
};
[[nodiscard]] std::vector<HeldCase> held_cases();

// Problems of the tests of special values and long rows, which also have Static columns.
[[nodiscard]] std::vector<Problem> special_problems();

// What can run this problem: every kernel with Runtime columns that was compiled, and the built-in
// choice if it is one of special_problems().
[[nodiscard]] std::vector<NamedKernel> every_kernel(const Problem& problem, bool deterministic = false);

// The few problems with which the mutation check runs.
[[nodiscard]] std::vector<Problem> mutation_problems();
[[nodiscard]] std::vector<HeldCase> mutation_cases();

// The built-in choice; it is the same for every architecture.
[[nodiscard]] plan::Bundle chosen(const Problem& problem, bool deterministic = false);

}  // namespace jitsoftmax::host_test
