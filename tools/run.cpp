// `jitsoftmax run`: softmax of a .npy file.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <jitsoftmax/engine.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "commands.hpp"
#include "compute.hpp"
#include "cuda/device.hpp"
#include "exit_code.hpp"
#include "interrupt.hpp"
#include "logger.hpp"
#include "npy.hpp"
#include "options.hpp"
#include "plan/specialization.hpp"
#include "run_report.hpp"
#include "verify.hpp"
#include "work.hpp"

namespace jitsoftmax::tools {
namespace {

struct RunOptions {
  std::string input;
  std::string output;
  std::int64_t axis = -1;
  std::string op = "softmax";
  float scale = 1;
  std::optional<std::string> dtype;
  std::optional<std::string> device;
  std::optional<std::string> arch;
  std::optional<std::string> masked_rows;
  std::optional<std::string> on_miss;
  bool verify = false;
  bool verbose = false;
  bool json = false;
  EngineOptions engine;
};

// Where the kernel runs. `context` is that of a GPU; without one it is the host.
struct Target {
  std::unique_ptr<cuda::PrimaryContext> context;
  int ordinal = 0;
  bool fell_back = false;  // no GPU was found
};

Target choose_target(const RunOptions& request, const Device& from_environment) {
  const bool ask_environment = !request.device && from_environment.kind() != Device::Kind::current;
  if (!ask_environment && request.device.value_or("auto") == "auto") {
    try {
      return {std::make_unique<cuda::PrimaryContext>(0), 0, false};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_driver) throw;
      logger().info("no GPU: {}", error.what());
      return {nullptr, 0, true};
    }
  }
  const Device device = ask_environment ? from_environment : Device::parse(*request.device);
  switch (device.kind()) {
    case Device::Kind::cuda:
      return {std::make_unique<cuda::PrimaryContext>(device.ordinal()), device.ordinal(), false};
    case Device::Kind::host:
      return {};
    case Device::Kind::current:
      break;
  }
  throw Failure(exit_code::usage, "--device current: a program has no context of its own: use auto, cuda:N or host");
}

// Compiles the problem's kernels into the cache, for machines that have the GPU. What stands in the
// way is an error only if the architecture was asked for.
void compile_beside(const Problem& problem, const RunOptions& request, Options options, RunReport& report) {
  if (options.on_miss == OnMiss::fail && !request.arch) {
    report.not_warmed = fmt::format("{} is 'fail'", request.on_miss ? "--on-miss" : "JITSOFTMAX_ON_MISS");
    return;
  }
  options.device = Device::current();  // never touched by a warmup
  const Arch arch = Arch::parse(request.arch.value_or("sm_90"));
  try {
    report.warmed = Engine(std::move(options)).warmup({problem}, {arch}).items;
  } catch (const Error& error) {
    const bool unavailable = error.code() == ErrorCode::no_compiler || error.code() == ErrorCode::io_error;
    if (request.arch || !unavailable) throw;
    report.not_warmed = error.what();
    return;
  }
  if (!request.arch) return;
  for (const WarmupItem& item : report.warmed) {
    if (item.outcome != WarmupOutcome::failed) continue;
    throw Failure(exit_code::incomplete, fmt::format("could not compile {}: {}", describe(item), item.error));
  }
}

template <typename Function>
double seconds_of(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void compute_on(const Target& target, const Work& work, Options options, RunReport& report) {
  if (target.context) {
    const cuda::ContextScope current(target.context->context());
    options.device = Device::cuda(target.ordinal);
    report.device = fmt::format("cuda:{}", target.ordinal);
    report.device_name = fmt::format("{} ({})", cuda::device_name(target.context->device()), report.device);
    Engine engine(std::move(options));
    const Kernel kernel = engine.prepare(work.problem);
    report.seconds = seconds_of([&] { compute_on_cuda(kernel, work); });
    report.kernels = kernel.specializations();
    report.origins = kernel.origins();
    report.stats = engine.stats();
    return;
  }
  options.device = Device::host();
  options.variant = {};  // of GPU kernels
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  report.device = "host";
  report.device_name = fmt::format("the CPU ({} thread{})", threads, threads == 1 ? "" : "s");
  Engine engine(std::move(options));
  const Kernel kernel = engine.prepare(work.problem);
  report.seconds = seconds_of([&] { compute_on_host(kernel, work); });
  report.kernels = kernel.specializations();
  report.origins = kernel.origins();
  report.stats = engine.stats();
}

DType output_dtype(const RunOptions& request, DType in) {
  const DType out = request.dtype ? plan::dtype_named(*request.dtype).value_or(in) : in;
  if (out == in || (in != DType::f64 && out != DType::f64)) return out;
  throw Failure(exit_code::usage,
                fmt::format("--dtype: the result of {0} input can be {0}, not {1}: convert the input first, "
                            "x.astype(numpy.{1})",
                            npy::numpy_name(in), npy::numpy_name(out)));
}

int run(const RunOptions& request) {
  const InterruptScope interrupts;
  if (request.verbose) log_details();
  Options options = request.engine.options();
  if (request.masked_rows == "zero") options.masked_rows = MaskedRows::zero;
  if (request.on_miss) options.on_miss = request.on_miss == "fail" ? OnMiss::fail : OnMiss::compile;

  const OutputFile output(request.output);
  const npy::Array in = npy::read(request.input);
  npy::Array out(npy::Header{output_dtype(request, in.header.dtype), in.header.shape});
  const std::size_t axis = axis_of(in.header.shape, request.axis);

  RunReport report;
  report.input = request.input;
  report.output = request.output;
  report.in = in.header;
  report.out = out.header;
  report.empty = in.bytes().empty();
  if (!report.empty) {
    Work work;
    work.split = split(in.header.shape, axis);
    work.problem.cols = work.split.cols;
    work.problem.in = in.header.dtype;
    work.problem.out = out.header.dtype;
    work.problem.op = request.op == "log_softmax" ? Op::log_softmax : Op::softmax;
    work.problem.layout = work.split.inner > 1 ? Layout::strided : Layout::contiguous;
    work.scale = request.scale;
    work.in = in.bytes().data();
    work.out = out.bytes().data();

    const Target target = choose_target(request, options.device);
    if (target.fell_back || request.arch) compile_beside(work.problem, request, options, report);
    compute_on(target, work, options, report);
    if (request.verify) report.verdict = verify(work, options.masked_rows);
  }

  const bool wrong = report.verdict && report.verdict->wrong > 0;
  if (!wrong) {
    npy::write(output, out);
    report.written = true;
  }
  std::fputs((request.json ? to_json(report) : to_text(report, request.verbose)).c_str(), stdout);
  if (wrong) throw Failure(exit_code::wrong, "the result is wrong and was not written: please report this");
  return exit_code::done;
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  const auto request = std::make_shared<RunOptions>();
  CLI::App& command = *program.add_subcommand("run", "Softmax of a .npy file of float16, float32 or float64");
  command.add_option("input", request->input, "The array, as numpy.save writes it")->required()->type_name("IN.npy");
  command.add_option("-o,--output", request->output, "Where the result goes; may be the input")
      ->required()
      ->type_name("OUT.npy");
  command.add_option("--axis", request->axis, "The axis that sums to 1; negative: from the end")->capture_default_str();
  command.add_option("--op", request->op, "What to compute")
      ->check(CLI::IsMember({"softmax", "log_softmax"}))
      ->capture_default_str();
  command.add_option("--scale", request->scale, "softmax(scale * x)")->capture_default_str();
  command.add_option("--dtype", request->dtype, "Element type of the result (default: the input's)")
      ->check(CLI::IsMember({"f16", "f32", "f64"}));
  command.add_option("--masked-rows", request->masked_rows, "What a row of -inf only becomes (default: nan)")
      ->check(CLI::IsMember({"nan", "zero"}));
  command
      .add_option("--on-miss", request->on_miss,
                  "What happens if a GPU's kernel is in no cache (default: JITSOFTMAX_ON_MISS, compile)")
      ->check(CLI::IsMember({"compile", "fail"}));
  command.add_option("--device", request->device, "auto (a GPU if there is one), cuda:N or host");
  command.add_option("--arch", request->arch,
                     "Also compile the kernel for this architecture into the cache (without a GPU: sm_90)");
  command.add_flag("--verify", request->verify, "Compare with an f64 reference before anything is written");
  command.add_flag("--verbose", request->verbose, "Kernels, times, bytes");
  command.add_flag("--json", request->json, "One JSON object instead of lines");
  request->engine.add_to(command);
  command.callback([request, &action] { action = [request] { return run(*request); }; });
}

}  // namespace jitsoftmax::tools
