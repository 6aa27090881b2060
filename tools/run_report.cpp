#include "run_report.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace jitsoftmax::tools {
namespace {

double milliseconds(double seconds) { return seconds * 1e3; }

// Where element `index` of a row-major array is.
npy::Shape position(std::int64_t index, const npy::Shape& shape) {
  npy::Shape at(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return at;
}

std::string describe(const WarmupItem& item, const char* indent) {
  switch (item.outcome) {
    case WarmupOutcome::compiled:
      return fmt::format("{}compiled {} in {:.0f} ms\n", indent, tools::describe(item), milliseconds(item.seconds));
    case WarmupOutcome::cached:
      return fmt::format("{}found {} in the cache\n", indent, tools::describe(item));
    case WarmupOutcome::failed:
      return fmt::format("{}could not compile {}: {}\n", indent, tools::describe(item), item.error);
  }
  return {};
}

std::string describe(const Verdict& verdict, const npy::Shape& shape) {
  const std::string worst =
      fmt::format("{:.9g} at [{}] where {:.9g} is right: {:.3g} of the error that is allowed", verdict.got,
                  fmt::join(position(verdict.index, shape), ", "), verdict.expected, verdict.ratio);
  return verdict.wrong == 0
             ? fmt::format("verified {} elements; the largest error: {}\n", verdict.elements, worst)
             : fmt::format("wrong: {} of {} elements; the largest error: {}\n", verdict.wrong, verdict.elements, worst);
}

const char* chosen_by(Origin origin) noexcept {
  switch (origin) {
    case Origin::record:
      return "a tuning record";
    case Origin::variant:
      return "the options";
    case Origin::built_in:
      break;
  }
  return "the library";
}

std::size_t bytes_moved(const RunReport& report) { return npy::byte_count(report.in) + npy::byte_count(report.out); }

std::string details(const RunReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.kernels.size(); ++i) {
    text += fmt::format("  kernel {}, chosen by {}\n", report.kernels[i], chosen_by(report.origins[i]));
  }
  text += fmt::format("  {} compiled in {:.0f} ms, {} from the cache, loaded in {:.1f} ms\n", report.stats.compiles,
                      milliseconds(report.stats.compile_seconds), report.stats.disk_hits,
                      milliseconds(report.stats.load_seconds));
  text += fmt::format("  {} bytes read and written in {:.3f} ms ({:.2f} GB/s)\n", bytes_moved(report),
                      milliseconds(report.seconds), static_cast<double>(bytes_moved(report)) / report.seconds / 1e9);
  return text;
}

// JSON has no NaN and no infinity.
nlohmann::ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

nlohmann::ordered_json json_of(const npy::Header& header) {
  return {{"dtype", npy::numpy_name(header.dtype)}, {"shape", header.shape}};
}

}  // namespace

std::string describe(const WarmupItem& item) { return fmt::format("{} for {}", item.specialization, item.arch.name()); }

const char* name_of(WarmupOutcome outcome) noexcept {
  switch (outcome) {
    case WarmupOutcome::compiled:
      return "compiled";
    case WarmupOutcome::cached:
      return "cached";
    case WarmupOutcome::failed:
      break;
  }
  return "failed";
}

std::string to_text(const RunReport& report, bool verbose) {
  std::string text;
  if (report.empty) {
    text += fmt::format("shape {} has no elements: nothing to compute\n", npy::describe(report.in.shape));
  } else {
    for (const WarmupItem& item : report.warmed) text += describe(item, "");
    if (!report.not_warmed.empty()) text += fmt::format("compiled no kernel: {}\n", report.not_warmed);
    text += fmt::format("computed on {}\n", report.device_name);
    if (verbose) text += details(report);
    if (report.verdict) text += describe(*report.verdict, report.out.shape);
  }
  if (report.written) {
    text += fmt::format("wrote {}: {} of {}\n", report.output, npy::describe(report.out.shape),
                        npy::numpy_name(report.out.dtype));
  }
  return text;
}

std::string to_json(const RunReport& report) {
  nlohmann::ordered_json json{{"input", report.input},      {"in", json_of(report.in)},  {"output", report.output},
                              {"out", json_of(report.out)}, {"written", report.written}, {"empty", report.empty}};
  if (!report.empty) {
    json["device"] = report.device;
    json["device_name"] = report.device_name;
    json["kernels"] = report.kernels;
    json["tuned_kernels"] = report.stats.tuned_kernels;
    json["compiled"] = report.stats.compiles;
    json["from_cache"] = report.stats.disk_hits;
    json["compile_seconds"] = report.stats.compile_seconds;
    json["load_seconds"] = report.stats.load_seconds;
    json["bytes"] = bytes_moved(report);
    json["seconds"] = report.seconds;
    nlohmann::ordered_json& warmed = json["warmed"] = nlohmann::ordered_json::array();
    for (const WarmupItem& item : report.warmed) {
      warmed.push_back({{"specialization", item.specialization},
                        {"arch", item.arch.name()},
                        {"outcome", name_of(item.outcome)},
                        {"seconds", item.seconds}});
    }
    if (!report.not_warmed.empty()) json["not_warmed"] = report.not_warmed;
    if (const auto& verdict = report.verdict) {
      json["verified"] = {{"elements", verdict->elements},
                          {"wrong", verdict->wrong},
                          {"largest_error_of_allowed", number(verdict->ratio)},
                          {"at", position(verdict->index, report.out.shape)},
                          {"got", number(verdict->got)},
                          {"expected", number(verdict->expected)}};
    }
  }
  // Paths need not be UTF-8, JSON has to be.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace jitsoftmax::tools
