#include "host/launch.hpp"

#include <iostream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "host/compiled.hpp"
#include "host/executor.hpp"

namespace jitsoftmax::host_test {
namespace {

constexpr int resident_blocks = 2;  // few: persistent kernels go round with few rows already

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
  const kernels::Arguments arguments = plan::arguments(problem, rows, masked);
  run_grid(
      plan::geometry(specialization, rows, resident_blocks), [&] { compiled.kernel(arguments); }, seed);

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
