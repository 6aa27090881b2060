// `jitsoftmax bench`: kernels beside a copy of the same bytes.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <jitsoftmax/engine.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench_case.hpp"
#include "bench_cells.hpp"
#include "bench_compare.hpp"
#include "bench_contenders.hpp"
#include "bench_report.hpp"
#include "bench_study.hpp"
#include "clock_meter.hpp"
#include "commands.hpp"
#include "cuda/device.hpp"
#include "exit_code.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "output_file.hpp"
#include "shapes.hpp"

namespace jitsoftmax::tools {
namespace {

struct BenchRequest {
  std::string shapes;
  std::string json;
  std::string csv;
  std::string compare;
  std::string with;
  std::optional<std::string> fail_above;
  int device = 0;
  bool study = false;
  BenchOptions measuring;
  EngineOptions engine;
};

void write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  OutputFile(path).write({std::as_bytes(std::span(text))});
}

// Prints what changed since an earlier benchmark; throws Failure where too much is slower.
void report_changes(const BenchCells& before, const BenchCells& after, std::optional<double> limit) {
  std::fputs(to_text(compare(before, after), before, after).c_str(), stdout);
  if (!limit) return;
  const std::vector<BenchChange> worse = slower(before, after, *limit);
  if (!worse.empty()) throw Failure(exit_code::wrong, describe(worse, before, *limit));
}

// What to measure, before a GPU is needed.
std::vector<ShapeLine> shapes_of(const BenchRequest& request) {
  if (request.study) {
    if (!request.engine.variant.empty()) {
      throw Failure(exit_code::usage, "--study measures kernels of its own; leave out --variant and its kin");
    }
    return {study_shape(request.shapes.empty() ? std::vector<ShapeLine>{} : read_shapes(request.shapes))};
  }
  if (request.shapes.empty()) {
    throw Failure(
        exit_code::usage,
        "nothing to measure: --shapes FILE says what, or --compare OLD.json --with NEW.json compares results");
  }
  return read_shapes(request.shapes);
}

int run_bench(const BenchRequest& request) {
  const InterruptScope interrupts;
  // What is wrong with these is said before anything is measured.
  std::optional<double> limit;
  if (request.fail_above) limit = parse_percent(*request.fail_above);
  std::optional<BenchCells> before;
  if (!request.compare.empty()) before = read_bench(request.compare);
  if (!request.with.empty()) {
    report_changes(*before, read_bench(request.with), limit);
    return exit_code::done;
  }
  const std::vector<ShapeLine> shapes = shapes_of(request);
  const cuda::PrimaryContext context(request.device);
  const cuda::ContextScope current(context.context());
  const Arch arch = cuda::architecture(context.device());
  Options options = request.engine.options();
  options.device = Device::cuda(request.device);
  const bool every = request.engine.variant.name == "every";
  const std::vector<StudyKernel> study =
      request.study ? study_kernels(shapes.front().problem) : std::vector<StudyKernel>{};
  Contenders competing;
  if (request.study) {
    competing = study_contenders(study, options, shapes.front().problem, arch);
  } else if (!every) {
    competing = named_contenders(options, request.engine.variant);
  }
  jit::Compiler compiler(options.nvrtc, options.log);
  const tune::Instruments instruments(compiler, arch);
  const ClockMeter clocks(context.device());

  BenchReport report = describe_machine(context, compiler);
  std::fputs(header_text(report).c_str(), stdout);
  bool wrong = false;
  for (const ShapeLine& shape : shapes) {
    stop_if_interrupted();
    if (shape.problem.cols == 0) continue;
    const std::int64_t rows = rows_of(shape);
    if (rows == 0) continue;
    if (every) competing = every_candidate(options, shape.problem, arch);
    report.cases.push_back(bench(context, instruments, shape.problem, rows, competing.list, request.measuring));
    report.cases.back().clocks = clocks.read();
    competing.describe(report.cases.back());
    std::fputs(case_text(report.cases.back()).c_str(), stdout);
    std::fflush(stdout);
    for (const Measured& measured : report.cases.back().kernels) {
      wrong = wrong || (measured.verdict && measured.verdict->wrong > 0);
    }
  }
  if (request.study) std::fputs(study_text(report, study).c_str(), stdout);
  write_file(request.json, request.study ? study_json(report, study) : to_json(report));
  write_file(request.csv, to_csv(report));
  if (wrong) throw Failure(exit_code::wrong, "a kernel's result is wrong; it was not timed");
  if (before) report_changes(*before, parse_bench(to_json(report), "this run"), limit);
  return exit_code::done;
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  const auto request = std::make_shared<BenchRequest>();
  CLI::App& command = *program.add_subcommand(
      "bench", "Time kernels beside a copy of the same bytes, on a GPU (--variant: best, tuned, all, every or one)");
  CLI::Option* const shapes = command.add_option("--shapes", request->shapes, shapes_help)->type_name("FILE");
  command.add_flag("--study", request->study,
                   "Measure the versions of the online-softmax lesson, and what rows in registers cost, at its shape, "
                   "4096 x 4096 f32, or the one of --shapes");
  command.add_option("--json", request->json, "Write all figures to this file")->type_name("FILE");
  command.add_option("--csv", request->csv, "Write the table to this file")->type_name("FILE");
  CLI::Option* const compare =
      command.add_option("--compare", request->compare, "Show what changed since an earlier --json result")
          ->type_name("OLD.json");
  command.add_option("--with", request->with, "Compare this result instead of measuring; needs no GPU")
      ->type_name("NEW.json")
      ->needs(compare)
      ->excludes(shapes);
  command
      .add_option("--fail-above", request->fail_above,
                  "Exit with 6 if a kernel's share of the copy fell by more than this, as 5%")
      ->type_name("PERCENT")
      ->needs(compare);
  command.add_option("--gpu", request->device, "Ordinal of the GPU")->capture_default_str();
  command.add_option("--rounds", request->measuring.rounds, "Interleaved rounds; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--seconds", request->measuring.seconds, "That one measurement lasts at least")
      ->capture_default_str();
  request->engine.add_to(command);
  command.callback([request, &action] { action = [request] { return run_bench(*request); }; });
}

}  // namespace jitsoftmax::tools
