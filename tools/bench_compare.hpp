// Two benchmarks, cell by cell: what became slower. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench_cells.hpp"

namespace jitsoftmax::tools {

struct BenchChange {
  std::string cell;
  double before = 0;  // shares of the copy
  double after = 0;

  // -0.05: the share fell by 5 %.
  [[nodiscard]] double relative() const noexcept { return after / before - 1; }
  // By more than `limit` (0.05: 5 %). A share that fell by exactly the limit is not slower.
  [[nodiscard]] bool is_slower(double limit) const noexcept;
};

struct BenchComparison {
  std::size_t compared = 0;               // cells that both have timed
  std::vector<BenchChange> changed = {};  // by more than 1 %, either way; in the order of `after`
  std::vector<std::string> gone = {};     // timed before only; with the reason, where there is one
  std::vector<std::string> added = {};    // timed after only
};

[[nodiscard]] BenchComparison compare(const BenchCells& before, const BenchCells& after);

// The cells that are slower by more than `limit`.
[[nodiscard]] std::vector<BenchChange> slower(const BenchCells& before, const BenchCells& after, double limit);

// The fraction that "5%" or "5" means. Throws Failure (usage).
[[nodiscard]] double parse_percent(const std::string& text);

[[nodiscard]] std::string to_text(const BenchComparison& comparison, const BenchCells& before, const BenchCells& after);

// "2 cells are slower than in OLD.json by more than 5 %: 4096x4096 f32 best (-7.1 %), ..."
[[nodiscard]] std::string describe(const std::vector<BenchChange>& slower, const BenchCells& before, double limit);

}  // namespace jitsoftmax::tools
