// `jitsoftmax explain`: which kernels a problem gets, why, and what they take.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <jitsoftmax/engine.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "exit_code.hpp"
#include "explain_report.hpp"
#include "explanation.hpp"
#include "logger.hpp"
#include "options.hpp"
#include "shapes.hpp"

namespace jitsoftmax::tools {
namespace {

struct ExplainRequest {
  std::vector<std::string> shape;
  std::optional<std::string> arch;
  std::optional<int> device;
  std::string op;
  bool strided = false;
  Listings listings;
  std::optional<std::string> kernel;
  bool json = false;
  EngineOptions engine;
};

// For the architecture that was asked for, else for a GPU that is there, else for sm_90.
Choice choose(const Problem& problem, const ExplainRequest& request, const Options& options) {
  if (request.arch) return choose_for(problem, Arch::parse(*request.arch));
  try {
    return choose_on(problem, request.device.value_or(0), options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::no_driver || request.device) throw;
    logger().info("no GPU: {}", error.what());
    return choose_for(problem, {9, 0});
  }
}

int run_explain(const ExplainRequest& request) {
  ShapeLine shape = parse_shape(request.shape);
  if (request.strided) shape.problem.layout = Layout::strided;
  if (request.op == "softmax") shape.problem.op = Op::softmax;
  if (request.op == "log_softmax") shape.problem.op = Op::log_softmax;
  const Options options = request.engine.options();
  Choice choice = choose(shape.problem, request, options);
  if (request.kernel) choice.bundle = bundle_spelled(shape.problem, *request.kernel);
  const Explanation explanation = explain(shape, std::move(choice), options, request.listings);
  std::fputs((request.json ? to_json(explanation) : to_text(explanation)).c_str(), stdout);
  return exit_code::done;
}

}  // namespace

void add_explain(CLI::App& program, Action& action) {
  const auto request = std::make_shared<ExplainRequest>();
  CLI::App& command = *program.add_subcommand(
      "explain", "Show which kernels a problem gets, why, and what they take; needs NVRTC or a warm cache, no GPU");
  command.add_option("shape", request->shape, "N dtype [rows] [log_softmax] [strided], as a line of a shapes file")
      ->required()
      ->expected(2, 5);
  CLI::Option* const arch =
      command.add_option("--arch", request->arch, "Architecture (default: that of a GPU, else sm_90)");
  command
      .add_option("--gpu", request->device,
                  "Ordinal of the GPU, whose tuning records count (default: 0, if it is there)")
      ->excludes(arch);
  command.add_option("--op", request->op, "softmax or log_softmax")->check(CLI::IsMember({"softmax", "log_softmax"}));
  command.add_flag("--strided", request->strided, "Rows whose elements are apart");
  command.add_option("--kernel", request->kernel, "Instead of those that are chosen, the kernel of this spelling");
  command.add_flag("--ptx", request->listings.ptx, "The kernels' PTX too");
  command.add_flag("--sass", request->listings.sass, "The kernels' machine code too; needs nvdisasm or cuobjdump");
  command.add_flag("--json", request->json, "One JSON object instead of lines");
  request->engine.add_cache_to(command);
  command.callback([request, &action] { action = [request] { return run_explain(*request); }; });
}

}  // namespace jitsoftmax::tools
