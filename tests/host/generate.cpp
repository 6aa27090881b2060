// Writes the table of kernels that a suite runs: every specialization's name expression, which is
// valid C++, beside the function that it names.
//
//   generate suite|mutations DIRECTORY FILES
//
// writes kernels_0.cpp ... and kernels.cpp, which joins them.
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/cases.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::host_test;

using Names = std::set<std::string>;

void add(const plan::Bundle& bundle, Names& names) {
  for (const plan::Specialization& s : bundle) names.insert(plan::name_expression(s));
}

void add_runtime(const Problem& problem, bool deterministic, Names& names) {
  for (const NamedKernel& kernel : runtime_kernels(problem, deterministic)) add(kernel.bundle, names);
}

void add(const std::vector<HeldCase>& cases, Names& names) {
  for (const HeldCase& held : cases) {
    add(held.peeled.bundle, names);
    add(held.deterministic.bundle, names);
  }
}

// Kernels that several parts run are counted in the first.
void report(const char* part, const Names& names, std::size_t before) {
  std::cout << names.size() - before << " specializations " << part << "\n";
}

Names whole_suite() {
  Names names;
  for (Problem problem : all_types()) {
    for (problem.cols = 1; problem.cols <= longest_runtime_row; ++problem.cols) {
      for (const Layout layout : {Layout::contiguous, Layout::strided}) {
        problem.layout = layout;
        for (const bool deterministic : {false, true}) add_runtime(problem, deterministic, names);
      }
    }
  }
  report("with Runtime columns", names, 0);
  std::size_t before = names.size();
  for (const bool deterministic : {false, true}) {
    for (const Problem& problem : threshold_problems(deterministic)) add(chosen(problem, deterministic), names);
    report(deterministic ? "around thresholds of the deterministic choice" : "around thresholds of the choice", names,
           before);
    before = names.size();
  }
  for (const bool deterministic : {false, true}) {
    for (const Problem& problem : special_problems()) add(chosen(problem, deterministic), names);
  }
  report("for special values", names, before);
  before = names.size();
  add(held_cases(), names);
  report("by hand, of the families that read a row once", names, before);
  report("in all", names, 0);
  return names;
}

Names mutation_check() {
  Names names;
  for (const Problem& problem : mutation_problems()) {
    add_runtime(problem, false, names);
    add(chosen(problem), names);
  }
  add(mutation_cases(), names);
  report("for the mutation check", names, 0);
  return names;
}

constexpr const char* prologue = R"(// Generated from tests/host/cases.cpp.
#include "host/compiled.hpp"
#include "kernel_templates/softmax_counted.cuh"
#include "kernel_templates/softmax_looped.cuh"
#include "kernel_templates/softmax_registers.cuh"
#include "kernel_templates/softmax_safe.cuh"
#include "kernel_templates/softmax_split.cuh"
#include "kernel_templates/softmax_staged.cuh"
#include "kernel_templates/softmax_strided.cuh"
#include "kernel_templates/softmax_strided_registers.cuh"
#include "kernel_templates/softmax_strided_staged.cuh"

namespace jitsoftmax::kernels {
)";

// A file that would not change keeps its time: nothing has to be compiled again.
void write(const std::string& path, const std::string& text) {
  std::ifstream before(path);
  if (std::string(std::istreambuf_iterator<char>(before), {}) == text) return;
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

// Neighbouring names are dealt to different files, which then take equally long to compile.
std::string table(const Names& names, std::size_t file, std::size_t files) {
  std::string rows;
  std::size_t index = 0;
  for (const std::string& name : names) {
    if (index++ % files == file)
      rows.append("      {\"").append(name).append("\",\n       &").append(name).append("},\n");
  }
  return prologue + ("host_test::Table kernels_" + std::to_string(file)) +
         "() {\n  static constexpr host_test::Compiled rows[] = {\n" + rows +
         "  };\n  return rows;\n}\n}  // namespace jitsoftmax::kernels\n";
}

std::string joined(std::size_t files) {
  std::string declarations;
  std::string calls;
  for (std::size_t file = 0; file < files; ++file) {
    const std::string call = "kernels_" + std::to_string(file) + "()";
    declarations += "host_test::Table " + call + ";\n";
    calls += (file == 0 ? "kernels::" : ", kernels::") + call;
  }
  return "// Generated from tests/host/cases.cpp.\n#include \"host/compiled.hpp\"\n\nnamespace jitsoftmax {\n"
         "namespace kernels {\n" +
         declarations +
         "}\nnamespace host_test {\n"
         "std::vector<Table> tables() { return {" +
         calls + "}; }\n}\n}  // namespace jitsoftmax\n";
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 4) throw std::runtime_error("usage: generate suite|mutations DIRECTORY FILES");
  const Names names = std::string(arguments[1]) == "suite" ? whole_suite() : mutation_check();
  const std::string directory = arguments[2];
  const std::size_t files = std::stoul(arguments[3]);
  for (std::size_t file = 0; file < files; ++file) {
    write(directory + "/kernels_" + std::to_string(file) + ".cpp", table(names, file, files));
  }
  write(directory + "/kernels.cpp", joined(files));
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
