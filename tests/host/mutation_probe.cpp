// What the mutation check runs: few kernels, but for every barrier and every bound of them a launch
// that shows it. Exit code 1 if a kernel is wrong; the sanitizers end the process on their own.
//
//   probe MUTANT
#include <iostream>
#include <limits>
#include <random>
#include <string>

#include "host/cases.hpp"
#include "host/mutant.hpp"
#include "host/trial.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::host_test;

constexpr std::uint64_t seed = 1;

void expect_right(const Sample& rows, const NamedKernel& kernel, const Placement& place) {
  const Outcome outcome = run(rows, kernel.bundle, place, seed);
  if (outcome.failure.empty()) return;
  std::cerr << kernel.name << ": " << outcome.failure << "\n";
  std::exit(1);
}

void check(const Problem& problem) {
  const bool strided = problem.layout == Layout::strided;
  // A part of a block, and several blocks a persistent block; strided rows in whole packets, of two slices.
  const std::int64_t count = strided ? 16 : 5;
  std::mt19937_64 random(seed);
  const Sample rows = random_sample(problem, count, random);
  std::vector<NamedKernel> kernels = runtime_kernels(problem);
  kernels.push_back({"built-in", chosen(problem)});
  const std::int64_t inner = strided ? count / 2 : 1;
  for (const NamedKernel& kernel : kernels) {
    const std::int64_t vector = kernel.bundle.front().config.vector;
    const std::int64_t aligned = strided ? 0 : (vector - problem.cols % vector) % vector;
    expect_right(rows, kernel, {.in_gap = aligned, .out_gap = aligned, .inner = inner});
    expect_right(rows, kernel, {.in_phase = 1, .out_phase = 2, .in_gap = 1, .inner = inner});
  }
}

void check(const HeldCase& held) {
  std::mt19937_64 random(seed);
  const Sample rows = random_sample(held.problem, 3, random);
  const std::int64_t vector = held.peeled.bundle.front().config.vector;
  const std::int64_t aligned = (vector - held.problem.cols % vector) % vector;
  for (const NamedKernel& kernel : {held.peeled, held.deterministic}) {
    expect_right(rows, kernel, {.in_gap = aligned, .out_gap = aligned});
    expect_right(rows, kernel, {.in_phase = 1, .out_phase = 2, .in_gap = 1});
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: probe MUTANT\n";
    return 2;
  }
  mutant = std::stoi(arguments[1]);
  for (const Problem& problem : mutation_problems()) check(problem);
  for (const HeldCase& held : mutation_cases()) check(held);
  return 0;
}
