#include "tune_report.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/specialization.hpp"

namespace jitsoftmax::tools {
namespace {

double microseconds(double seconds) { return seconds * 1e6; }

std::ptrdiff_t count(const TuneReport& report, bool (*which)(const TuneItem&)) {
  return std::count_if(report.items.begin(), report.items.end(), which);
}
bool was_ruled_out(const TuneItem& item) { return !item.rejected.empty() && !item.failed; }
bool has_failed(const TuneItem& item) { return item.failed; }

// "1.7 % faster than the built-in choice"
std::string compared(const TuneReport& report) {
  if (report.winner == report.built_in) return "the built-in choice";
  const TuneItem* const built_in = report.find(report.built_in);
  const TuneItem* const winner = report.find(report.winner);
  if (built_in == nullptr || winner == nullptr || built_in->median == 0) return "the built-in choice cannot be used";
  return fmt::format("{:.1f} % less than the built-in choice", 100 * (1 - winner->median / built_in->median));
}

std::string line_of(const TuneItem& item) {
  if (!item.rejected.empty()) return fmt::format("  {:>26}  {}: {}\n", "-", item.specialization, item.rejected);
  return fmt::format("  {:>8.2f} {:>8.2f} {:>8.2f}  {}{}\n", microseconds(item.median), microseconds(item.p10),
                     microseconds(item.p90), item.specialization, item.timed ? "" : " (recorded)");
}

}  // namespace

std::string to_text(const TuneReport& report, bool all) {
  const std::string shape =
      fmt::format("{}, {} rows", plan::describe(report.problem), report.few_rows ? "up to 64" : "more than 64");
  const TuneItem* const winner = report.find(report.winner);
  if (winner == nullptr) return fmt::format("{}: nothing to tune\n", shape);
  std::string text = fmt::format("{}: {:.2f} us for {} rows, {}\n  {}\n", shape, microseconds(winner->median),
                                 report.rows, compared(report), report.winner);
  if (report.timed() == 0) {
    text += fmt::format("  nothing to time: {} candidates are recorded\n",
                        report.items.size() - static_cast<std::size_t>(count(report, has_failed)));
  } else {
    text += fmt::format("  {} timed, {} ruled out, {} failed in {:.1f} s\n", report.timed(),
                        count(report, was_ruled_out), count(report, has_failed), report.seconds);
  }
  if (!all) return text;
  text += fmt::format("  {:>8} {:>8} {:>8}\n", "median", "p10", "p90 us");
  for (const TuneItem& item : report.items) text += line_of(item);
  return text;
}

nlohmann::ordered_json to_json(const TuneReport& report, const FactsByKernel& facts) {
  nlohmann::ordered_json json{{"problem", plan::describe(report.problem)},
                              {"cols", report.problem.cols},
                              {"rows", report.rows},
                              {"rows_kind", report.few_rows ? "few" : "many"},
                              {"device", report.device},
                              {"winner", report.winner},
                              {"built_in", report.built_in},
                              {"timed", report.timed()},
                              {"kept", report.kept},
                              {"seconds", report.seconds},
                              {"candidates", nlohmann::ordered_json::array()}};
  for (const TuneItem& item : report.items) {
    nlohmann::ordered_json entry{{"specialization", item.specialization}};
    if (item.rejected.empty()) {
      entry["median_seconds"] = item.median;
      entry["p10_seconds"] = item.p10;
      entry["p90_seconds"] = item.p90;
      entry["rounds"] = item.rounds;
      entry["timed"] = item.timed;
      if (const auto found = facts.find(item.specialization); found != facts.end()) add_facts(entry, found->second);
    } else {
      entry[item.failed ? "failed" : "ruled_out"] = item.rejected;
    }
    json["candidates"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace jitsoftmax::tools
