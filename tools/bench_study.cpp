#include "bench_study.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "exit_code.hpp"
#include "plan/candidates.hpp"
#include "plan/choice.hpp"

namespace jitsoftmax::tools {
namespace {

StudyKernel step(const char* name, int reads, std::optional<double> a100) {
  StudyKernel kernel{.name = name, .variant = {}, .reads = reads, .a100 = a100, .elements = {}};
  kernel.variant.name = name;
  return kernel;
}

StudyKernel by_hand(const char* family, const kernels::Config& config) {
  StudyKernel kernel{.name = fmt::format("{} {}", family, config.elements),
                     .variant = {},
                     .reads = 1,
                     .a100 = {},
                     .elements = config.elements};
  kernel.variant.family = family;
  kernel.variant.threads = config.threads;
  kernel.variant.rows = config.rows;
  kernel.variant.vector = config.vector;
  kernel.variant.elements = config.elements;
  return kernel;
}

std::vector<std::string> words_of(const Variant& variant) {
  if (!variant.name.empty()) return {"--variant", variant.name};
  std::vector<std::string> words{"--family", variant.family.value_or("")};
  for (const auto& [word, value] : {std::pair{"--threads", variant.threads}, std::pair{"--rows", variant.rows},
                                    std::pair{"--vector", variant.vector}, std::pair{"--elements", variant.elements}}) {
    if (!value) continue;
    words.emplace_back(word);
    words.push_back(std::to_string(*value));
  }
  return words;
}

std::int64_t bytes_asked_for(const BenchCase& result, int reads) {
  return result.rows * result.problem.cols * (reads * size_of(result.problem.in) + size_of(result.problem.out));
}

double share_of_peak(const BenchReport& report, const Measured& measured) {
  return static_cast<double>(report.cases.front().bytes) / measured.cold.median() / report.peak_bytes_a_second();
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }
std::string share(const Measured& measured, const Measured& copy) {
  return fmt::format("{:.3f}", copy.cold.median() / measured.cold.median());
}
std::string local_bytes(const Measured& measured) {
  return measured.facts ? std::to_string(measured.facts->used.stack_bytes) : "-";
}
std::string registers(const Measured& measured) {
  return measured.facts ? std::to_string(measured.facts->used.registers) : "-";
}

std::string step_line(const BenchReport& report, const StudyKernel& kernel, const Measured& measured) {
  if (!measured.error.empty()) return fmt::format("{:<8} {}\n", kernel.name, measured.error);
  const BenchCase& result = report.cases.front();
  return fmt::format(
      "{:<8} {:>9.2f} {:>12} {:>12} {:>12} {:>10.0f} {:>9} {:>6}\n", kernel.name, measured.cold.median() * 1e6,
      share(measured, result.copy), percent(share_of_peak(report, measured)), kernel.a100 ? percent(*kernel.a100) : "-",
      static_cast<double>(bytes_asked_for(result, kernel.reads)) * 1e-6, registers(measured), local_bytes(measured));
}

std::string half_line(const Measured& measured, const Measured& copy) {
  if (!measured.error.empty()) return fmt::format("{:>9} {:>7} {:>9} {:>6}", "-", "-", "-", "-");
  return fmt::format("{:>9.2f} {:>7} {:>9} {:>6}", measured.cold.median() * 1e6, share(measured, copy),
                     registers(measured), local_bytes(measured));
}

}  // namespace

ShapeLine study_shape(const std::vector<ShapeLine>& lines) {
  if (lines.empty()) return {.problem = {.cols = 4096}, .rows = 4096};
  if (lines.size() != 1) {
    throw Failure(exit_code::usage, fmt::format("--study is of one shape; the shapes file has {}", lines.size()));
  }
  if (lines.front().problem.layout == Layout::strided) {
    throw Failure(exit_code::usage, "--study is of rows whose elements are neighbours: remove 'strided'");
  }
  return lines.front();
}

std::vector<StudyKernel> study_kernels(const Problem& problem) {
  std::vector<StudyKernel> kernels{step("safe3", 3, {}), step("v0", 2, 0.07), step("v1", 2, 0.58),
                                   step("v2", 2, 0.70),  step("v3", 1, 0.82), step("v4", 2, 0.72)};
  const int vector = plan::widest_vector(problem);
  const std::int64_t packets = std::max<std::int64_t>(problem.cols / vector, 1);
  for (const int elements : {4, 8, 16, 32, 64}) {
    if (elements < vector) continue;
    constexpr std::int64_t most_threads = 1024;
    const std::int64_t each = elements / vector;
    const std::int64_t least = (packets - 1) / each + 1;
    if (least > most_threads) continue;
    const int threads = least < kernels::warp_size ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(least)))
                                                   : kernels::round_up(static_cast<int>(least), kernels::warp_size);
    const kernels::Config config{
        .threads = threads, .rows = std::max(1, 128 / threads), .vector = vector, .elements = elements};
    for (const char* family : {"registers", "counted"}) kernels.push_back(by_hand(family, config));
  }
  return kernels;
}

Contenders study_contenders(const std::vector<StudyKernel>& kernels, const Options& options, const Problem& problem,
                            const Arch& arch) {
  Contenders result;
  Code code(options);
  for (const StudyKernel& kernel : kernels) {
    result.add(kernel.name, options, kernel.variant);
    try {
      for (const plan::Specialization& s : plan::choose(problem, arch, kernel.variant)) {
        result.facts.emplace(plan::name_expression(s),
                             facts_of(s, code.get(s, arch, Code::Purpose::tuning).cubin, arch));
      }
    } catch (const Error& error) {
      // One that cannot serve the shape; the measurement says why.
      if (error.code() != ErrorCode::invalid_argument) throw;
    }
  }
  return result;
}

std::string study_text(const BenchReport& report, const std::vector<StudyKernel>& kernels) {
  const BenchCase& result = report.cases.front();
  std::string text = fmt::format(
      "\nThe steps of the lesson. A copy: {:.2f} us, {} of the theoretical {:.2f} TB/s\n"
      "{:<8} {:>9} {:>12} {:>12} {:>12} {:>10} {:>9} {:>6}\n",
      result.copy.cold.median() * 1e6, percent(share_of_peak(report, result.copy)),
      report.peak_bytes_a_second() * 1e-12, "step", "median us", "of the copy", "theoretical", "on an A100", "MB asked",
      "registers", "local");
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!kernels[i].elements) text += step_line(report, kernels[i], result.kernels[i]);
  }
  text += fmt::format(
      "\nA row in registers: the trip count compiled in, and known only at the launch\n"
      "{:>8} {:>7} {:>9} {:>7} {:>9} {:>6}  {:>9} {:>7} {:>9} {:>6}\n",
      "elements", "threads", "median us", "share", "registers", "local", "median us", "share", "registers", "local");
  for (std::size_t i = 0; i + 1 < kernels.size(); ++i) {
    if (!kernels[i].elements || kernels[i].elements != kernels[i + 1].elements) continue;
    text += fmt::format("{:>8} {:>7} {}  {}\n", *kernels[i].elements, kernels[i].variant.threads.value_or(0),
                        half_line(result.kernels[i], result.copy), half_line(result.kernels[i + 1], result.copy));
  }
  return text + "local: bytes of local memory a thread. tools/study.py adds the bytes that the memory moved.\n";
}

std::string study_json(const BenchReport& report, const std::vector<StudyKernel>& kernels) {
  nlohmann::ordered_json document = to_document(report);
  document["peak_bytes_a_second"] = report.peak_bytes_a_second();
  const BenchCase& result = report.cases.front();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    nlohmann::ordered_json& json = document["cases"][0]["kernels"][i];
    json["options"] = words_of(kernels[i].variant);
    json["bytes_asked_for"] = bytes_asked_for(result, kernels[i].reads);
    if (kernels[i].elements) json["elements_a_thread"] = *kernels[i].elements;
    if (kernels[i].a100) json["share_of_peak_on_a100"] = *kernels[i].a100;
    if (result.kernels[i].error.empty()) json["share_of_peak"] = share_of_peak(report, result.kernels[i]);
  }
  return document.dump(1) + "\n";
}

}  // namespace jitsoftmax::tools
