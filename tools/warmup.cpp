// `jitsoftmax warmup`: compiles the kernels of a shapes file into the cache.
#include "api/warmup.hpp"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <jitsoftmax/engine.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cache.hpp"
#include "cache/key.hpp"
#include "cache/store.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "interrupt.hpp"
#include "jit/compiler.hpp"
#include "jit/source.hpp"
#include "options.hpp"
#include "print_json.hpp"
#include "run_report.hpp"
#include "shapes.hpp"
#include "warmup_processes.hpp"
#include "warmup_progress.hpp"

namespace jitsoftmax::tools {
namespace {

struct WarmupRequest {
  std::string shapes;
  std::vector<std::string> archs;
  int jobs = 0;
  bool refresh = false;
  bool dry_run = false;
  bool json = false;
  EngineOptions engine;
};

// Whether a warmup would compile it.
class Missing {
 public:
  // Opens NVRTC only where its version matters. Throws no_compiler.
  Missing(const Options& options, bool refresh) : store_(store_options(options)) {
    if (refresh) version_ = jit::Compiler(options.nvrtc, options.log).version();
  }
  bool operator()(const WarmupWork& work) {
    const jit::Program program = jit::program(work.specialization, work.item.arch);
    const auto cubin = store_.find(cache::key_of(program, jit::templates()), program);
    return !cubin || (!version_.empty() && cubin->compiler != version_);
  }

 private:
  cache::Store store_;
  std::string version_;  // that every kernel is to be of; empty: whichever
};

// Counts what a warmup would do. Reads the cache and writes nothing.
int dry_run(const std::vector<Problem>& problems, const std::vector<Arch>& archs, const Options& options,
            const WarmupRequest& request) {
  const std::vector<WarmupWork> all = list_work(options, problems, archs);
  Missing missing(options, request.refresh);
  const auto to_compile = std::ranges::count_if(all, [&](const WarmupWork& work) { return missing(work); });
  // What a kernel takes of a core and of the disk: means over lengths around 1000, sm_90, NVRTC 13.0.
  constexpr double seconds_each = 0.12;
  constexpr std::int64_t bytes_each = 16'000;
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  const double jobs = request.jobs > 0 ? std::min<double>(request.jobs, cores) : cores;
  const double seconds = seconds_each * static_cast<double>(to_compile) / jobs;
  const std::int64_t bytes = bytes_each * to_compile;
  if (request.json) {
    print({{"specializations", all.size()},
           {"architectures", archs.size()},
           {"to_compile", to_compile},
           {"estimated_seconds", seconds},
           {"estimated_bytes", bytes},
           {"cache", describe_cache(options)}});
  } else {
    fmt::print("{} for {}: {} to compile, about {} and {:.1f} MB; nothing was written\n",
               plural(all.size(), "specialization"), plural(archs.size(), "architecture"), to_compile,
               duration(seconds), static_cast<double>(bytes) / 1e6);
  }
  return exit_code::done;
}

void print_lines(const WarmupReport& report, std::size_t archs, double seconds, const Options& options) {
  const std::size_t compiled = report.count(WarmupOutcome::compiled);
  const std::size_t failed = report.count(WarmupOutcome::failed);
  if (compiled == 0 && failed == 0 && interrupted() == 0) {
    fmt::print("nothing to compile: all {} are in {}\n", report.items.size(), describe_cache(options));
    return;
  }
  fmt::print("{} for {}: {} compiled, {} already there, {} failed in {:.1f} s\n",
             plural(report.items.size(), "specialization"), plural(archs, "architecture"), compiled,
             report.count(WarmupOutcome::cached), failed, seconds);
}

void print_json(const WarmupReport& report, double seconds, const Options& options) {
  Json items = Json::array();
  for (const WarmupItem& item : report.items) {
    items.push_back({{"specialization", item.specialization},
                     {"arch", item.arch.name()},
                     {"outcome", name_of(item.outcome)},
                     {"seconds", item.seconds}});
    if (!item.error.empty()) items.back()["error"] = item.error;
  }
  print({{"specializations", report.items.size()},
         {"compiled", report.count(WarmupOutcome::compiled)},
         {"cached", report.count(WarmupOutcome::cached)},
         {"failed", report.count(WarmupOutcome::failed)},
         {"seconds", seconds},
         {"cache", describe_cache(options)},
         {"items", std::move(items)}});
}

int warmup(const WarmupRequest& request) {
  const InterruptScope interrupts;
  const std::vector<Problem> problems = problems_of(read_shapes(request.shapes));
  const std::vector<Arch> archs = archs_named(request.archs);
  const Options options = request.engine.options();
  if (request.dry_run) return dry_run(problems, archs, options, request);

  WarmupProgress progress;
  WarmupOptions how;
  how.jobs = request.jobs > 0 ? request.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  how.refresh = request.refresh;
  WarmupReport reached;  // all that there is to report of a warmup that was interrupted
  how.progress = [&](const WarmupItem& item, std::size_t done, std::size_t total) {
    reached.items.push_back(item);
    progress.show(done, total, item.outcome != WarmupOutcome::cached, describe(item));
    return interrupted() == 0;
  };
  const auto start = std::chrono::steady_clock::now();
  WarmupReport report =
      how.jobs > 1 ? warm_up_in_processes(options, problems, archs, how) : Engine(options).warmup(problems, archs, how);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  progress.clear();
  if (interrupted() != 0) report = std::move(reached);

  for (const WarmupItem& item : report.items) {
    if (item.outcome != WarmupOutcome::failed) continue;
    std::fputs(fmt::format("jitsoftmax: error: {}: {}\n", describe(item), item.error).c_str(), stderr);
  }
  if (request.json) {
    print_json(report, seconds, options);
  } else {
    print_lines(report, archs.size(), seconds, options);
  }
  stop_if_interrupted();
  return report.count(WarmupOutcome::failed) == 0 ? exit_code::done : exit_code::incomplete;
}

}  // namespace

void add_warmup(CLI::App& program, Action& action) {
  const auto request = std::make_shared<WarmupRequest>();
  CLI::App& command = *program.add_subcommand("warmup", "Compile the kernels of a shapes file; needs NVRTC, no GPU");
  command.add_option("--shapes", request->shapes, shapes_help)->required()->type_name("FILE");
  command.add_option("--arch", request->archs, "Architectures, as sm_80,sm_90")->required()->delimiter(',');
  command.add_option("--jobs", request->jobs, "Compiles at once (default: as many as there are cores)")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--refresh", request->refresh, "Compile again what an NVRTC of another version made");
  command.add_flag("--dry-run", request->dry_run, "Only count what there is to compile, and estimate what it takes");
  command.add_flag("--json", request->json, "One JSON object instead of lines");
  request->engine.add_to(command);
  command.callback([request, &action] { action = [request] { return warmup(*request); }; });
}

}  // namespace jitsoftmax::tools
