// Runs one kernel on the CPU, for a debugger.
//
//   run_one COLS DTYPE[:DTYPE] KERNEL ROWS [SEED [INNER]]
//
// KERNEL is a name that the program lists when it does not know the one given. With INNER the rows are strided:
// so many of them lie side by side.
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>

#include "host/cases.hpp"
#include "host/trial.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::host_test;

DType dtype(const std::string& name) {
  if (const auto type = plan::dtype_named(name)) return *type;
  throw std::runtime_error("'" + name + "' is no element type; use f16, bf16, f32 or f64");
}

NamedKernel kernel_named(const std::string& name, const Problem& problem) {
  std::string known;
  for (NamedKernel& kernel : every_kernel(problem)) {
    if (kernel.name == name) return std::move(kernel);
    known += "\n  " + kernel.name;
  }
  for (HeldCase& held : held_cases()) {
    if (held.problem != problem) continue;
    if (held.peeled.name == name) return std::move(held.peeled);
    known += "\n  " + held.peeled.name;
  }
  throw std::runtime_error("no kernel '" + name + "' for " + plan::describe(problem) + "; there are" + known);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 5 || count > 7) throw std::runtime_error("usage: run_one COLS DTYPE[:DTYPE] KERNEL ROWS [SEED [INNER]]");
  const std::string types = arguments[2];
  const std::size_t colon = types.find(':');
  Problem problem{.cols = std::stoll(arguments[1])};
  problem.in = dtype(types.substr(0, colon));
  problem.out = colon == std::string::npos ? problem.in : dtype(types.substr(colon + 1));
  Placement placement;
  if (count > 6) {
    problem.layout = Layout::strided;
    placement.inner = std::stoll(arguments[6]);
  }
  const NamedKernel kernel = kernel_named(arguments[3], problem);
  const std::uint64_t seed = count > 5 ? std::stoull(arguments[5]) : 1;

  std::mt19937_64 random(seed);
  const Sample rows = random_sample(problem, std::stoll(arguments[4]), random);
  const Outcome outcome = run(rows, kernel.bundle, placement, seed);
  std::cout << plan::name_expression(kernel.bundle.front()) << ": "
            << (outcome.failure.empty() ? "right" : outcome.failure) << "\n";
  return outcome.failure.empty() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
