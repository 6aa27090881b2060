#include "jit/compiler.hpp"

#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "jit/nvrtc.hpp"
#include "jit/resources.hpp"
#include "jit/target.hpp"

namespace jitsoftmax::jit {
namespace {

constexpr std::string_view architecture_option = "--gpu-architecture=";

// NVRTC 12.0 names what is internal to a program after its first external definition that is no
// template, or, without one, after the process: bytes would then differ from run to run. An unused
// function is such a definition, and leaves nothing in the code.
constexpr const char* fixed_identity = "\n__device__ void jitsoftmax_program() {}\n";

std::string described(const Nvrtc& nvrtc) { return "NVRTC " + nvrtc.version() + " (" + nvrtc.path + ")"; }

Error unknown_arch(const Nvrtc& nvrtc, const Arch& arch) {
  std::string known;
  for (const Arch& each : nvrtc.archs) known += (known.empty() ? "" : ", ") + each.name();
  return Error(ErrorCode::unknown_arch,
               described(nvrtc) + " cannot compile for " + arch.name() + ". It knows " + known +
                   ", and variants (\"a\", \"f\") of the newer ones. Ask for one of these, or let Options::nvrtc or "
                   "JITSOFTMAX_NVRTC name an NVRTC that knows " +
                   arch.name() + ": a newer one for a new GPU, CUDA 12 for an old one.");
}

// Only for a result that is not success.
Error refused(const Nvrtc& nvrtc, const Program& program, nvrtcResult result, const std::string& log) {
  const std::string details = std::string(nvrtc.GetErrorString(result)) + "\n" + log;
  if (result == NVRTC_ERROR_OUT_OF_MEMORY)
    return Error(ErrorCode::out_of_memory, described(nvrtc) + " ran out of memory on " + program.name + ": " + details);
  if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE)
    return Error(ErrorCode::no_compiler, described(nvrtc) + " cannot use its builtins library: " + details +
                                             "\nTried " + nvrtc.builtins_tried +
                                             ". Install the builtins of exactly this version, from the package that "
                                             "NVRTC came from, in the same folder as NVRTC.");
  // The driver of the compiler has the first word on an architecture, the front end the last.
  const bool about_arch =
      (result == NVRTC_ERROR_INVALID_OPTION && log.find("--gpu-architecture") != std::string::npos) ||
      (result == NVRTC_ERROR_COMPILATION && log.find("--nv_arch") != std::string::npos);
  if (about_arch) return unknown_arch(nvrtc, program.arch);
  return Error(ErrorCode::compile_failed,
               described(nvrtc) + " refused " + program.name + " for " + program.arch.name() + ": " + details +
                   "\nThis is a fault in the library or its installation: please report it.");
}

// The programs, of one architecture with the same options, as one. Not empty.
std::vector<Cubin> build(const Nvrtc& nvrtc, std::span<const Header> headers, std::span<const Program> programs,
                         PayloadKind kind) {
  const Program& first = programs.front();
  std::vector<std::string> options = first.options;
  options.insert(options.end(), nvrtc.extra_options.begin(), nvrtc.extra_options.end());
  std::string text;
  for (const Program& program : programs) {
    if (text.find(program.text) == std::string::npos) text += program.text;
  }

  NvrtcProgram compilation(nvrtc, text + fixed_identity, headers);
  for (const Program& program : programs) compilation.add_name(program.name);
  const nvrtcResult result = compilation.compile(options);
  const std::string log = compilation.log();
  if (result != NVRTC_SUCCESS) throw refused(nvrtc, first, result, log);

  const std::vector<char> payload = kind == PayloadKind::ptx ? compilation.ptx() : compilation.cubin();
  // For a virtual architecture (compute_90) NVRTC succeeds with a cubin of no bytes.
  if (payload.empty())
    throw Error(ErrorCode::compile_failed, described(nvrtc) + " made an empty " +
                                               (kind == PayloadKind::ptx ? "PTX text" : "cubin") + " of " + first.name +
                                               " for " + first.arch.name() +
                                               ": the options must name a real architecture (sm_90, not compute_90).");
  std::vector<Cubin> cubins;
  for (const Program& program : programs) {
    std::string kernel = compilation.lowered_name(program.name);
    const Resources resources = parse_resources(log, kernel);
    cubins.push_back({.kind = kind,
                      .payload = payload,
                      .kernel = std::move(kernel),
                      .compiler = nvrtc.version(),
                      .resources = resources});
  }
  return cubins;
}

Cubin build(const Nvrtc& nvrtc, std::span<const Header> headers, const Program& program, PayloadKind kind) {
  return std::move(build(nvrtc, headers, std::span(&program, 1), kind).front());
}

// The same program for another target.
Program retargeted(Program program, const Target& target) {
  std::string name = target.arch.name();  // "sm_90"
  if (target.kind == PayloadKind::ptx) name.replace(0, name.find('_'), "compute");
  for (std::string& option : program.options)
    if (option.starts_with(architecture_option)) option = std::string(architecture_option) + name;
  program.arch = target.arch;
  return program;
}

std::vector<std::string> toolkits_of_environment() {
  std::vector<std::string> toolkits;
  for (const char* name : {"CUDA_PATH", "CUDA_HOME"})
    if (const auto value = base::environment(name)) toolkits.push_back(*value);
  return toolkits;
}

std::vector<Header> embedded_headers() {
  std::vector<Header> headers;
  for (const TemplateFile& file : templates()) headers.push_back({std::string(file.name), std::string(file.text)});
  return headers;
}

}  // namespace

struct Compiler::State {
  const NvrtcSearch search;
  const Log log;
  const std::vector<Header> headers;
  std::atomic<bool> warned{false};

  // Compiles wait for one another only while the library is being opened.
  const Nvrtc& nvrtc() {
    const std::lock_guard lock(opening_);
    if (!nvrtc_) {
      nvrtc_ = open_nvrtc(search);
      base::report(log, LogLevel::debug, "opened " + described(*nvrtc_));
    }
    return *nvrtc_;
  }

  State(std::string path, Log callback)
      : search{std::move(path), toolkits_of_environment()}, log(std::move(callback)), headers(embedded_headers()) {}

 private:
  std::mutex opening_;
  std::unique_ptr<const Nvrtc> nvrtc_;  // never replaced once set
};

Compiler::Compiler(std::string path, Log log) : state_(std::make_unique<State>(std::move(path), std::move(log))) {}
Compiler::~Compiler() = default;

Cubin Compiler::compile(const Program& program) {
  const Nvrtc& nvrtc = state_->nvrtc();
  if (!knows(nvrtc.archs, program.arch)) throw unknown_arch(nvrtc, program.arch);
  return build(nvrtc, state_->headers, program, PayloadKind::cubin);
}

Cubin Compiler::compile_for_device(const Program& program) {
  return std::move(compile_together(std::span(&program, 1)).front());
}

std::vector<Cubin> Compiler::compile_together(std::span<const Program> programs) {
  if (programs.empty()) return {};
  const Nvrtc& nvrtc = state_->nvrtc();
  const Arch& arch = programs.front().arch;
  const std::optional<Target> target = target_for_device(arch, nvrtc.archs);
  if (!target) throw unknown_arch(nvrtc, arch);
  if (target->kind == PayloadKind::cubin && target->arch == arch)
    return build(nvrtc, state_->headers, programs, PayloadKind::cubin);

  if (!state_->warned.exchange(true))
    base::report(state_->log, LogLevel::warning,
                 described(nvrtc) + " does not know " + arch.name() +
                     ", the architecture of this GPU: kernels are made for " + target->arch.name() +
                     (target->kind == PayloadKind::ptx ? " as PTX, which the driver compiles whenever one is loaded. "
                                                       : ", which runs there too. ") +
                     "A newer NVRTC (Options::nvrtc, JITSOFTMAX_NVRTC) gives code for exactly this GPU.");
  std::vector<Program> others;
  for (const Program& program : programs) others.push_back(retargeted(program, *target));
  return build(nvrtc, state_->headers, others, target->kind);
}

std::string Compiler::ptx(const Program& program) {
  const Nvrtc& nvrtc = state_->nvrtc();
  if (!knows(nvrtc.archs, program.arch)) throw unknown_arch(nvrtc, program.arch);
  const Target target{program.arch, PayloadKind::ptx};
  return build(nvrtc, state_->headers, retargeted(program, target), target.kind).payload.data();
}

std::string Compiler::version() { return state_->nvrtc().version(); }
std::vector<Arch> Compiler::architectures() { return state_->nvrtc().archs; }
std::string Compiler::library() { return state_->nvrtc().path; }
std::string Compiler::builtins() { return state_->nvrtc().builtins.path(); }

}  // namespace jitsoftmax::jit
