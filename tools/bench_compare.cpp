#include "bench_compare.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "exit_code.hpp"

namespace jitsoftmax::tools {
namespace {

constexpr double worth_a_line = 0.01;
constexpr double rounding = 1e-9;  // of a quotient of two shares, generously

std::unordered_map<std::string, const BenchCell*> by_name(const BenchCells& cells) {
  std::unordered_map<std::string, const BenchCell*> result;
  for (const BenchCell& cell : cells.cells) result.emplace(cell.name, &cell);
  return result;
}

// The cells that both have timed.
std::vector<BenchChange> changes(const BenchCells& before, const BenchCells& after) {
  const auto old = by_name(before);
  std::vector<BenchChange> result;
  for (const BenchCell& cell : after.cells) {
    const auto found = old.find(cell.name);
    if (found == old.end() || !found->second->share || !cell.share) continue;
    result.push_back({cell.name, *found->second->share, *cell.share});
  }
  return result;
}

// The cells that only `these` have timed.
std::vector<std::string> only_in(const BenchCells& these, const BenchCells& others) {
  const auto other = by_name(others);
  std::vector<std::string> result;
  for (const BenchCell& cell : these.cells) {
    if (!cell.share) continue;
    const auto found = other.find(cell.name);
    if (found != other.end() && found->second->share) continue;
    const bool failed = found != other.end() && !found->second->error.empty();
    result.push_back(cell.name + (failed ? ": " + found->second->error : ""));
  }
  return result;
}

std::string list(const std::vector<std::string>& names, const std::string& source) {
  if (names.empty()) return {};
  std::string text = fmt::format("only in {}:\n", source);
  for (const std::string& name : names) text += fmt::format("  {}\n", name);
  return text;
}

}  // namespace

bool BenchChange::is_slower(double limit) const noexcept { return relative() < -(limit + rounding); }

BenchComparison compare(const BenchCells& before, const BenchCells& after) {
  BenchComparison result{.gone = only_in(before, after), .added = only_in(after, before)};
  for (BenchChange& change : changes(before, after)) {
    ++result.compared;
    if (std::abs(change.relative()) > worth_a_line + rounding) result.changed.push_back(std::move(change));
  }
  return result;
}

std::vector<BenchChange> slower(const BenchCells& before, const BenchCells& after, double limit) {
  std::vector<BenchChange> result = changes(before, after);
  std::erase_if(result, [&](const BenchChange& change) { return !change.is_slower(limit); });
  return result;
}

double parse_percent(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size() - (text.ends_with('%') ? 1 : 0);
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= 0 && value <= 100)) {
    throw Failure(exit_code::usage, fmt::format("'{}' is no percentage from 0 to 100; write it as 5% or 2.5%", text));
  }
  return value / 100;
}

std::string to_text(const BenchComparison& comparison, const BenchCells& before, const BenchCells& after) {
  std::string text = fmt::format("{} ({}) -> {} ({}): {} cells compared, {} changed by more than {:g} %\n",
                                 before.source, before.device, after.source, after.device, comparison.compared,
                                 comparison.changed.size(), 100 * worth_a_line);
  if (!comparison.changed.empty()) {
    std::size_t width = 4;
    for (const BenchChange& change : comparison.changed) width = std::max(width, change.cell.size());
    text += fmt::format("{:<{}} {:>7} {:>7} {:>8}\n", "cell", width, "before", "after", "change");
    for (const BenchChange& change : comparison.changed) {
      text += fmt::format("{:<{}} {:>7.3f} {:>7.3f} {:>+6.1f} %\n", change.cell, width, change.before, change.after,
                          100 * change.relative());
    }
  }
  return text + list(comparison.gone, before.source) + list(comparison.added, after.source);
}

std::string describe(const std::vector<BenchChange>& slower, const BenchCells& before, double limit) {
  std::string cells;
  for (const BenchChange& change : slower) {
    cells += fmt::format("{}{} ({:+.1f} %)", cells.empty() ? "" : ", ", change.cell, 100 * change.relative());
  }
  return fmt::format("{} cell{} slower than in {} by more than {:g} %: {}", slower.size(),
                     slower.size() == 1 ? " is" : "s are", before.source, 100 * limit, cells);
}

}  // namespace jitsoftmax::tools
