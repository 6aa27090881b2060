#include "explain_report.hpp"

#include <spdlog/fmt/fmt.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "plan/choice.hpp"
#include "plan/prediction.hpp"

namespace jitsoftmax::tools {
namespace {

using nlohmann::ordered_json;
using plan::Family;
using plan::Specialization;

std::string plural(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool for_any_number(const Specialization& s) { return s.most_rows == std::numeric_limits<std::int64_t>::max(); }

// "at most 64 rows"
std::string how_many_rows(const Specialization& s) {
  if (for_any_number(s))
    return s.least_rows == 0 ? "any number of rows" : fmt::format("{} rows and more", s.least_rows);
  return s.least_rows == 0 ? fmt::format("at most {} rows", s.most_rows)
                           : fmt::format("{} to {} rows", s.least_rows, s.most_rows);
}

const char* what_it_does(Family family) {
  switch (family) {
    case Family::safe:
      return "a row is read three times and written once";
    case Family::looped:
      return "a row is read twice and written once";
    case Family::registers:
      return "a row stays in registers between its one read and its one write";
    case Family::staged:
      return "a row waits in shared memory between its one read and its one write";
    case Family::split:
      return "a row is shared by blocks all over the device, and read once where their registers hold it";
    case Family::counted:
      return "a row stays in an array that the launch counts, in local memory, between its one read and its one write";
    case Family::strided:
      return "rows side by side are read twice and written once";
    case Family::strided_registers:
      return "rows side by side stay in registers between their one read and their one write";
    case Family::strided_staged:
      break;
  }
  return "rows side by side wait in registers and in shared memory between their one read and their one write";
}

// Who chose the kernel, and for how many rows.
std::string why(const Explanation& explanation, const Specialization& s) {
  if (s.origin == Origin::variant) return "its spelling, for any number of rows";
  const std::string who = s.origin == Origin::record
                              ? fmt::format("a tuning record of {}", explanation.choice.device)
                              : fmt::format("the built-in rules for {} on {}", plan::describe(explanation.problem),
                                            explanation.choice.arch.name());
  return fmt::format("{}, for {}", who, how_many_rows(s));
}

const char* who(Origin origin) {
  switch (origin) {
    case Origin::record:
      return "record";
    case Origin::variant:
      return "spelling";
    case Origin::built_in:
      break;
  }
  return "built_in";
}

// How the threads cover the rows.
std::string cover(const Specialization& s) {
  const kernels::Config& config = s.config;
  const int packets = config.elements / config.vector;
  std::string text = plural(std::int64_t{config.threads} * config.cluster, "thread") + " a row";
  if (config.cluster > 1) text += fmt::format(", in a cluster of {} blocks", config.cluster);
  if (s.family == Family::split) text += " of each of its blocks";
  text += fmt::format(", each with {} of {}", plural(packets, "packet"), plural(config.vector, "element"));
  if (!plan::reads_once(s.family)) text += " at a time";
  if (config.packed) text += ", held as they are in memory";
  if (config.low_latency) text += ", agreeing at low latency";
  if (config.staggered) text += ", the first ones one after another";
  const int rows = plan::rows_of_tile(s);
  const char* whose = s.family == Family::split ? "gang of blocks" : config.cluster > 1 ? "cluster" : "block";
  return text + fmt::format("; {} a {}", plural(rows, "row"), whose);
}

std::string code(const ExplainedKernel& kernel) {
  const jit::Resources& used = kernel.cubin.resources;
  const std::string origin =
      fmt::format("{} NVRTC {}", kernel.compiled ? "compiled now by" : "in the cache, by", kernel.cubin.compiler);
  if (kernel.cubin.kind == jit::PayloadKind::ptx) {
    return origin + ", as PTX: what it takes is known when the driver has compiled it";
  }
  const std::string local =
      used.stack_bytes == 0 && used.spill_bytes == 0
          ? "no local memory"
          : fmt::format("local memory: {} bytes of stack, {} spilled", used.stack_bytes, used.spill_bytes);
  return fmt::format("{}: {} a thread, {} bytes of shared memory a block, {}", origin,
                     plural(used.registers, "register"),
                     std::int64_t{kernel.specialization.config.shared} + used.shared_bytes, local);
}

std::int64_t in_flight(const ExplainedKernel& kernel) {
  return kernel.occupancy->blocks * plan::bytes_held(kernel.specialization);
}

std::string occupancy(const ExplainedKernel& kernel, const Arch& arch) {
  if (!kernel.occupancy) {
    return kernel.cubin.kind == jit::PayloadKind::ptx ? "not known"
                                                      : fmt::format("not known: no table of {}", arch.name());
  }
  return fmt::format("at most {}, {} a multiprocessor, bounded by {}: {} bytes in flight",
                     plural(kernel.occupancy->blocks, "block"), plural(kernel.occupancy->warps, "warp"),
                     plan::name_of(kernel.occupancy->bound), in_flight(kernel));
}

// What a model says is never without how wrong it was.
std::string prediction(double share) {
  constexpr plan::PredictionError choices = plan::error_of_choices;
  constexpr plan::PredictionError candidates = plan::error_of_candidates;
  return fmt::format(
      "{:.2f} of a copy's speed: a model of one H200. Of {} built-in choices that were measured half are within {:.0f} "
      "% "
      "and all within {:.0f} %; of {} candidates half are within {:.0f} %, one in ten is off by more than {:.0f} %",
      share, choices.kernels, 100 * choices.median, 100 * choices.worst, candidates.kernels, 100 * candidates.median,
      100 * candidates.p90);
}

std::string heading(const ExplainedKernel& kernel) {
  if (kernel.for_aligned && kernel.for_others) return "Any rows";
  if (kernel.for_others) return "Other rows";
  const Specialization& s = kernel.specialization;
  const int elements = plan::elements_of_access(s);
  if (plan::is_strided(s.family)) return fmt::format("Rows in groups of {} side by side, aligned", elements);
  return fmt::format("Rows that begin at multiples of {} elements", elements);
}

std::string to_text(const ExplainedKernel& kernel, const Explanation& explanation) {
  std::string text = fmt::format("\n{}: {}\n", heading(kernel), plan::name_expression(kernel.specialization));
  const auto line = [&](const char* name, const std::string& what) {
    text += fmt::format("  {:<10} {}\n", name, what);
  };
  line("chosen by", why(explanation, kernel.specialization));
  line("family",
       fmt::format("{}: {}", plan::name_of(kernel.specialization.family), what_it_does(kernel.specialization.family)));
  line("threads", cover(kernel.specialization));
  line("code", code(kernel));
  line("occupancy", occupancy(kernel, explanation.choice.arch));
  if (kernel.blocks) line("grid", plural(*kernel.blocks, "block"));
  if (kernel.predicted) line("predicted", prediction(*kernel.predicted));
  return text;
}

ordered_json to_json(const ExplainedKernel& kernel, const Explanation& explanation) {
  const Specialization& s = kernel.specialization;
  ordered_json json{{"specialization", plan::name_expression(s)},
                    {"aligned_rows", kernel.for_aligned},
                    {"other_rows", kernel.for_others},
                    {"chosen_by", who(s.origin)},
                    {"why", why(explanation, s)},
                    {"least_rows", s.least_rows},
                    {"most_rows", nullptr},
                    {"family", plan::name_of(s.family)},
                    {"threads_a_row", s.config.threads * s.config.cluster},
                    {"cluster", s.config.cluster},
                    {"packets_a_thread", s.config.elements / s.config.vector},
                    {"elements_a_packet", s.config.vector},
                    {"rows_a_tile", plan::rows_of_tile(s)},
                    {"compiled", kernel.compiled},
                    {"nvrtc", kernel.cubin.compiler}};
  if (!for_any_number(s)) json["most_rows"] = s.most_rows;
  if (kernel.cubin.kind == jit::PayloadKind::cubin) {
    const jit::Resources& used = kernel.cubin.resources;
    json["registers"] = used.registers;
    json["shared_bytes"] = std::int64_t{s.config.shared} + used.shared_bytes;
    json["stack_bytes"] = used.stack_bytes;
    json["spill_bytes"] = used.spill_bytes;
  }
  if (kernel.occupancy) {
    json["occupancy"] = {{"blocks", kernel.occupancy->blocks},
                         {"warps", kernel.occupancy->warps},
                         {"bounded_by", plan::name_of(kernel.occupancy->bound)},
                         {"bytes_in_flight", in_flight(kernel)}};
  }
  if (kernel.blocks) json["grid_blocks"] = *kernel.blocks;
  if (kernel.predicted) json["predicted_share_of_copy"] = *kernel.predicted;
  if (!kernel.ptx.empty()) json["ptx"] = kernel.ptx;
  if (!kernel.sass.empty()) json["sass"] = kernel.sass;
  return json;
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  const Choice& choice = explanation.choice;
  std::string text = fmt::format(
      "{}, {}, for {}\n{} bytes to move: every element read once and written once\n",
      plan::describe(explanation.problem), plural(explanation.rows, "row"),
      choice.device.empty() ? choice.arch.name() : fmt::format("{} ({})", choice.device, choice.arch.name()),
      explanation.bytes);
  for (const ExplainedKernel& kernel : explanation.kernels) text += to_text(kernel, explanation);
  const auto list = [&](const char* what, std::string ExplainedKernel::*listing) {
    for (const ExplainedKernel& kernel : explanation.kernels) {
      if ((kernel.*listing).empty()) continue;
      text += fmt::format("\n{} of {}:\n{}", what, plan::name_expression(kernel.specialization), kernel.*listing);
    }
  };
  list("PTX", &ExplainedKernel::ptx);
  list("SASS", &ExplainedKernel::sass);
  return text;
}

std::string to_json(const Explanation& explanation) {
  ordered_json json{{"problem", plan::describe(explanation.problem)},
                    {"cols", explanation.problem.cols},
                    {"rows", explanation.rows},
                    {"bytes", explanation.bytes},
                    {"arch", explanation.choice.arch.name()},
                    {"device", nullptr},
                    {"kernels", ordered_json::array()}};
  if (!explanation.choice.device.empty()) json["device"] = explanation.choice.device;
  for (const ExplainedKernel& kernel : explanation.kernels) json["kernels"].push_back(to_json(kernel, explanation));
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace jitsoftmax::tools
