// `jitsoftmax bench`: kernels beside a copy of the same bytes.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <jitsoftmax/engine.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "api/code.hpp"
#include "bench_case.hpp"
#include "bench_cells.hpp"
#include "bench_compare.hpp"
#include "bench_report.hpp"
#include "commands.hpp"
#include "cuda/device.hpp"
#include "exit_code.hpp"
#include "interrupt.hpp"
#include "logger.hpp"
#include "options.hpp"
#include "output_file.hpp"
#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/variants.hpp"
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
  BenchOptions measuring;
  EngineOptions engine;
};

// One engine a contender: a variant is an option of an engine.
struct Contenders {
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<Contender> list;

  void add(const std::string& name, Options options, const Variant& variant) {
    options.variant = variant;
    engines.push_back(std::make_unique<Engine>(std::move(options)));
    list.push_back({name, engines.back().get()});
  }
};

Contenders contenders(const BenchRequest& request) {
  Options options = request.engine.options();
  options.device = Device::cuda(request.device);
  Contenders result;
  const Variant& given = request.engine.variant;
  const bool all = given.name == "all";
  const bool tuned = given.name == "tuned";
  options.use_records = false;
  if (all || tuned || given.name == "best" || given.empty()) result.add("best", options, {});
  options.use_records = true;
  if (tuned) result.add("tuned", options, {});
  if (all) {
    for (const std::string& name : plan::variant_names()) {
      Variant variant;
      variant.name = name;
      result.add(name, options, variant);
    }
  }
  if (result.list.empty()) result.add(given.name.empty() ? "given" : given.name, options, given);
  return result;
}

// One contender for each candidate of the problem. Their kernels are compiled here, in parallel.
Contenders every_candidate(const BenchRequest& request, const Problem& problem, const Arch& arch) {
  Options options = request.engine.options();
  options.device = Device::cuda(request.device);
  const std::vector<plan::Specialization> candidates = plan::candidates(problem, arch);
  Code code(options);
  std::vector<char> fits(candidates.size(), 1);  // char: written by several threads
  std::atomic<std::size_t> next{0};
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      workers.emplace_back([&] {
        for (std::size_t at = next++; at < candidates.size(); at = next++) {
          try {
            // The kernel that is timed, and the rest of its bundle.
            for (const plan::Specialization& s : plan::bundle_of(candidates[at], false)) {
              const jit::Resources used = code.get(s, arch, Code::Purpose::warmup).cubin.resources;
              if (used.stack_bytes != 0 || used.spill_bytes != 0) fits[at] = 0;
            }
          } catch (const Error& error) {
            logger().warn("{}: {}", plan::name_expression(candidates[at]), error.what());
          }
        }
      });
    }
  }
  Contenders result;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (fits[i] == 0) continue;
    result.add(std::string(plan::name_of(candidates[i].family)), options, plan::variant_of(candidates[i]));
  }
  return result;
}

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
  if (request.shapes.empty()) {
    throw Failure(
        exit_code::usage,
        "nothing to measure: --shapes FILE says what, or --compare OLD.json --with NEW.json compares results");
  }
  const std::vector<ShapeLine> shapes = read_shapes(request.shapes);
  const cuda::PrimaryContext context(request.device);
  const cuda::ContextScope current(context.context());
  const bool every = request.engine.variant.name == "every";
  const Arch arch = cuda::architecture(context.device());
  Contenders competing;
  if (!every) competing = contenders(request);
  const Options options = request.engine.options();
  jit::Compiler compiler(options.nvrtc, options.log);
  const tune::Instruments instruments(compiler, arch);

  BenchReport report = describe_machine(context, compiler);
  std::fputs(header_text(report).c_str(), stdout);
  bool wrong = false;
  for (const ShapeLine& shape : shapes) {
    stop_if_interrupted();
    if (shape.problem.cols == 0) continue;
    const std::int64_t rows = rows_of(shape);
    if (rows == 0) continue;
    if (every) competing = every_candidate(request, shape.problem, arch);
    report.cases.push_back(bench(context, instruments, shape.problem, rows, competing.list, request.measuring));
    std::fputs(case_text(report.cases.back()).c_str(), stdout);
    std::fflush(stdout);
    for (const Measured& measured : report.cases.back().kernels) {
      wrong = wrong || (measured.verdict && measured.verdict->wrong > 0);
    }
  }
  write_file(request.json, to_json(report));
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
  CLI::Option* const shapes =
      command.add_option("--shapes", request->shapes, "Shapes file: N dtype [rows] a line")->type_name("FILE");
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
