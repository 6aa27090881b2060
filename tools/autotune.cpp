// `jitsoftmax autotune`: finds the fastest kernel for each line of a shapes file, and keeps what it found.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <jitsoftmax/engine.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "commands.hpp"
#include "cuda/device.hpp"
#include "exit_code.hpp"
#include "interrupt.hpp"
#include "kernel_facts.hpp"
#include "logger.hpp"
#include "options.hpp"
#include "plan/choice.hpp"
#include "plan/specialization.hpp"
#include "plan/tuned.hpp"
#include "progress_line.hpp"
#include "shapes.hpp"
#include "tune_report.hpp"

namespace jitsoftmax::tools {
namespace {

struct TuneRequest {
  std::string shapes;
  std::string effort = "quick";
  int device = 0;
  int jobs = 0;
  bool verbose = false;
  bool json = false;
  EngineOptions engine;
};

// What is wrong with one shape only; anything else ends the run.
bool concerns_one_shape(ErrorCode code) noexcept {
  return code == ErrorCode::driver_error || code == ErrorCode::out_of_memory || code == ErrorCode::internal;
}

class Tuning {
 public:
  explicit Tuning(const TuneRequest& request)
      : request_(request),
        options_(request.engine.options()),
        store_({.layers = options_.cache_layers, .directory = cache::resolve_directory(options_.cache_dir), .log = {}}),
        shapes_(read_shapes(request.shapes)) {}

  int run() {
    Options options = options_;
    options.device = Device::cuda(request_.device);
    Engine engine(options);
    for (const ShapeLine& shape : shapes_) {
      if (interrupted() != 0) break;
      tune(engine, shape);
    }
    line_.clear();
    if (request_.json) {
      const nlohmann::ordered_json json{{"cache", describe_cache(options)}, {"shapes", reports_}};
      std::fputs((json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n').c_str(), stdout);
    }
    stop_if_interrupted();
    if (lost_) throw Failure(exit_code::no_cache, "what was found could not be kept in " + describe_cache(options));
    return failed_ ? exit_code::incomplete : exit_code::done;
  }

 private:
  void tune(Engine& engine, const ShapeLine& shape) {
    TuneOptions how;
    how.effort = request_.effort == "full" ? TuneEffort::full : TuneEffort::quick;
    how.jobs = request_.jobs;
    how.progress = [&](const TuneProgress& progress) {
      line_.show(
          fmt::format("{} {}/{} {}", plan::describe(shape.problem), progress.done, progress.total, progress.what));
      return interrupted() == 0;
    };
    try {
      const TuneReport report = engine.autotune(shape.problem, rows_of(shape), how);
      line_.clear();
      if (!report.stopped) show(report);
    } catch (const Error& error) {
      if (!concerns_one_shape(error.code())) throw;
      line_.clear();
      logger().error("{}: {}", plan::describe(shape.problem), error.what());
      failed_ = true;
    }
  }

  void show(const TuneReport& report) {
    for (const TuneItem& item : report.items) {
      if (item.failed) logger().warn("{} failed: {}", item.specialization, item.rejected);
    }
    lost_ = lost_ || !report.kept;
    if (request_.json) {
      reports_.push_back(to_json(report, facts_of_kernels(report)));
      return;
    }
    std::fputs(to_text(report, request_.verbose).c_str(), stdout);
    std::fflush(stdout);
  }

  // Of the kernels that can be chosen, in the form for aligned rows, which is what was timed where there is one. They
  // were compiled into the cache, now or when they were timed first; what is there no more is left out.
  FactsByKernel facts_of_kernels(const TuneReport& report) {
    FactsByKernel facts;
    const Arch arch = cuda::architecture(cuda::device_of(request_.device));
    for (const TuneItem& item : report.items) {
      const auto named = plan::specialization_named(report.problem, item.specialization);
      if (!named || !item.rejected.empty()) continue;
      const auto found = cached_facts(store_, plan::bundle_of(*named, false).front(), arch);
      if (found) facts.emplace(item.specialization, *found);
    }
    return facts;
  }

  const TuneRequest& request_;
  const Options options_;
  cache::Store store_;
  const std::vector<ShapeLine> shapes_;
  ProgressLine line_;
  nlohmann::ordered_json reports_ = nlohmann::ordered_json::array();
  bool failed_ = false;
  bool lost_ = false;
};

int autotune(const TuneRequest& request) {
  const InterruptScope interrupts;
  return Tuning(request).run();
}

}  // namespace

void add_autotune(CLI::App& program, Action& action) {
  const auto request = std::make_shared<TuneRequest>();
  CLI::App& command = *program.add_subcommand(
      "autotune", "Find the fastest kernels for a shapes file on a GPU, and keep them in the cache");
  command.add_option("--shapes", request->shapes, shapes_help)->required()->type_name("FILE");
  command.add_option("--effort", request->effort, "quick: seconds a shape; full: longer measurements")
      ->check(CLI::IsMember({"quick", "full"}))
      ->capture_default_str();
  command.add_option("--gpu", request->device, "Ordinal of the GPU")->capture_default_str();
  command.add_option("--jobs", request->jobs, "Compiles at once (default: all cores but one)")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--verbose", request->verbose, "All candidates: times, or why they are out");
  command.add_flag("--json", request->json, "One JSON object instead of lines");
  request->engine.add_cache_to(command);
  command.callback([request, &action] { action = [request] { return autotune(*request); }; });
}

}  // namespace jitsoftmax::tools
