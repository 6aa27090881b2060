#include "host/launch.hpp"

#include <iostream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/compiled.hpp"
#include "host/executor.hpp"

namespace jitsoftmax::host_test {
namespace {

// Few: persistent kernels go round with few rows already, and some gangs have no room for a whole row.
int resident_blocks(const plan::Specialization& s) { return s.family == plan::Family::split ? 6 : 2; }

// A kernel finds what its last launch has left.
void* workspace_of(const Compiled& kernel, std::size_t bytes) {
  thread_local std::unordered_map<std::string_view, std::vector<std::uint64_t>> workspaces;
  if (bytes == 0) return nullptr;
  auto& words = workspaces[kernel.name];
  words.resize(bytes / sizeof(std::uint64_t));
  words.shrink_to_fit();
  return words.data();
}

struct Counting {
  std::mutex mutex;
  std::set<std::string_view> specializations;
  long long launches = 0;
  long long rows = 0;
};
Counting& counting() {
  static Counting instance;
  return instance;
}

const Compiled& find(const std::string& name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, Compiled> all;
    for (const Table& table : tables()) {
      for (const Compiled& row : table) all.emplace(row.name, row);
    }
    return all;
  }();
  const auto found = by_name.find(name);
  if (found == by_name.end()) throw std::logic_error("not compiled for the CPU, add it to cases.cpp: " + name);
  return found->second;
}

}  // namespace

const plan::Specialization& launch(const plan::Bundle& bundle, const Problem& problem, const Rows& given,
                                   MaskedRows masked, std::uint64_t seed) {
  plan::check(problem);
  const Rows rows = plan::check(problem, given);
  const plan::Specialization& specialization = bundle[plan::select(bundle, rows)];
  if (problem.cols == 0 || rows.count == 0) return specialization;
  const Compiled& compiled = find(plan::name_expression(specialization));
  const int resident = resident_blocks(specialization);
  plan::Geometry geometry = plan::geometry(specialization, rows, resident);
  if (specialization.config.staggered) geometry.staggered = 1;  // for rows as few and short as these it is not
  void* const workspace = workspace_of(compiled, plan::workspace_bytes(specialization, resident));
  const kernels::Arguments arguments = plan::arguments(problem, rows, masked, geometry, workspace);
  run_grid(
      geometry, [&] { compiled.kernel(arguments); }, seed);

  const std::lock_guard lock(counting().mutex);
  counting().specializations.insert(compiled.name);
  ++counting().launches;
  counting().rows += rows.count;
  return specialization;
}

void report_counts() {
  const std::lock_guard lock(counting().mutex);
  std::cout << counting().specializations.size() << " specializations, " << counting().launches << " launches, "
            << counting().rows << " rows" << std::endl;
}

}  // namespace jitsoftmax::host_test
