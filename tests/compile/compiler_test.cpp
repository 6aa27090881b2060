// Promise: NVRTC is found or the error says how to get it; what it makes is machine code for the
// architecture that was asked for, the same bytes every time, or an error that says what to do.
#include "jit/compiler.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <jitsoftmax/error.hpp>
#include <string>
#include <thread>

#include "jit/nvrtc.hpp"
#include "plan/candidates.hpp"

namespace fs = std::filesystem;
using jitsoftmax::Arch;
using jitsoftmax::DType;
using jitsoftmax::Error;
using jitsoftmax::ErrorCode;
using jitsoftmax::LogLevel;
using jitsoftmax::jit::Compiler;
using jitsoftmax::jit::Cubin;
using jitsoftmax::jit::PayloadKind;
using jitsoftmax::jit::Program;
using jitsoftmax::jit::program;
namespace plan = jitsoftmax::plan;

namespace {

const char* const text = R"(
template <int N> __global__ void scale(float* x) {
  __shared__ float row[64];
  row[threadIdx.x] = x[threadIdx.x] * N;
  __syncthreads();
  x[threadIdx.x] = row[63 - threadIdx.x];
})";

Program toy(const Arch& arch = {9, 0}) {
  return {text, "scale<3>", arch, {"--std=c++20", "--fmad=false", "--gpu-architecture=" + arch.name()}};
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Exits with 77 only where there is no NVRTC by any sign: one that is there and cannot be used is a failure.
void require_nvrtc() {
  static bool known = false;
  if (known) return;
  const std::string path = from_environment("JITSOFTMAX_NVRTC");
  try {
    (void)Compiler(path, {}).version();
    known = true;
  } catch (const Error& error) {
    bool present = !path.empty();
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
      present = present || ::dlopen(name, RTLD_NOW) != nullptr;
    for (const char* folder : {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"})
      present = present || !jitsoftmax::jit::nvrtc_files(folder).empty();
    if (present) throw;
    std::printf("skipped: there is no NVRTC on this machine\n%s\n", error.what());
    std::exit(77);
  }
}

Compiler make(jitsoftmax::Log log = {}) {
  require_nvrtc();
  return Compiler(from_environment("JITSOFTMAX_NVRTC"), std::move(log));
}

template <typename Call>
std::string message_of(ErrorCode code, Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK_EQ(static_cast<int>(error.code()), static_cast<int>(code));
    return error.what();
  }
  FAIL("no error");
  return {};
}

bool has(const std::string& message, const std::string& part) {
  INFO(message);
  INFO(part);
  const bool found = message.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

struct Folder {
  fs::path path;
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "compiler_test.XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

void write(const fs::path& file, const std::string& content) { std::ofstream(file) << content; }

std::vector<char> read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs one of the "child" test cases below in a fresh process, where no library is loaded yet.
int run_child(const std::string& test_case, const std::string& environment, std::string& output) {
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  const std::string command =
      "env " + environment + " '" + self + "' --no-skip --test-case='" + test_case + "' --no-colors 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return -1;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output.push_back(static_cast<char>(c));
  return ::pclose(pipe);
}

void check_child(const std::string& test_case, const std::string& environment) {
  std::string output;
  const int status = run_child(test_case, environment, output);
  INFO(output);
  CHECK_EQ(status, 0);
  CHECK(output.find("1 passed") != std::string::npos);
}

}  // namespace

TEST_CASE("A program becomes a cubin with its name and its resources") {
  Compiler compiler = make();
  const Cubin cubin = compiler.compile(toy());
  REQUIRE_GT(cubin.payload.size(), 64u);
  CHECK_EQ(std::string(cubin.payload.data(), 4), "\177ELF");
  CHECK(cubin.kind == PayloadKind::cubin);
  CHECK_EQ(cubin.kernel, "_Z5scaleILi3EEvPf");
  CHECK_EQ(cubin.compiler, compiler.version());
  CHECK_GT(cubin.resources.registers, 0u);
  CHECK_EQ(cubin.resources.shared_bytes, 256u);
  CHECK_EQ(cubin.resources.stack_bytes, 0u);
  CHECK_EQ(cubin.resources.spill_bytes, 0u);
}

TEST_CASE("The same program gives the same bytes: twice, in parallel, and in another process") {
  Compiler compiler = make();
  const std::vector<char> first = compiler.compile(toy()).payload;
  CHECK(compiler.compile(toy()).payload == first);

  std::vector<std::vector<char>> parallel(4);
  std::vector<std::thread> threads;
  for (auto& payload : parallel) threads.emplace_back([&] { payload = compiler.compile(toy()).payload; });
  for (std::thread& thread : threads) thread.join();
  for (const auto& payload : parallel) CHECK(payload == first);

  const Folder folder;
  for (const char* name : {"a", "b"}) check_child("child: writes the cubin", "OUT=" + (folder.path / name).string());
  CHECK(read(folder.path / "a") == first);
  CHECK(read(folder.path / "b") == first);
}

TEST_CASE("child: writes the cubin" * doctest::skip()) {
  const std::vector<char> payload = make().compile(toy()).payload;
  std::ofstream(from_environment("OUT"), std::ios::binary)
      .write(payload.data(), static_cast<std::streamsize>(payload.size()));
}

TEST_CASE("The variants that NVRTC does not list compile, and differ") {
  Compiler compiler = make();
  CHECK(compiler.compile(toy({9, 0, 'a'})).payload != compiler.compile(toy()).payload);
}

TEST_CASE("An unknown architecture is an error that lists the known ones") {
  Compiler compiler = make();
  for (const Arch& arch : {Arch{3, 5}, Arch{99, 9}, Arch{9, 1}, Arch{9, 0, 'q'}, Arch{9, 0, 'f'}}) {
    CAPTURE(arch.name());
    const std::string message = message_of(ErrorCode::unknown_arch, [&] { (void)compiler.compile(toy(arch)); });
    has(message, arch.name());
    for (const Arch& known : compiler.architectures()) has(message, known.name());
  }
  // The options have the last word, even where they contradict the program's architecture.
  Program program = toy();
  program.options.back() = "--gpu-architecture=sm_35";
  message_of(ErrorCode::unknown_arch, [&] { (void)compiler.compile(program); });
}

TEST_CASE("A GPU newer than the compiler gets the nearest target, with one warning") {
  std::vector<std::string> warnings;
  Compiler compiler = make([&](LogLevel level, const std::string& message) {
    if (level == LogLevel::warning) warnings.push_back(message);
  });
  CHECK(compiler.compile_for_device(toy()).payload == compiler.compile(toy()).payload);
  CHECK(warnings.empty());

  const Cubin ptx = compiler.compile_for_device(toy({99, 9}));
  CHECK(ptx.kind == PayloadKind::ptx);
  REQUIRE_GT(ptx.payload.size(), 1u);
  CHECK_EQ(ptx.payload.back(), '\0');  // the driver reads PTX as a C string
  CHECK_EQ(ptx.resources.registers, 0u);
  has(ptx.payload.data(), ".target sm_" + compiler.architectures().back().name().substr(3));
  has(ptx.payload.data(), ".entry " + ptx.kernel);

  const Cubin cubin = compiler.compile_for_device(toy({9, 1}));
  CHECK(cubin.kind == PayloadKind::cubin);
  CHECK(cubin.payload == compiler.compile(toy({9, 0})).payload);

  REQUIRE_EQ(warnings.size(), 1u);
  has(warnings[0], "sm_999");
  message_of(ErrorCode::unknown_arch, [&] { (void)compiler.compile_for_device(toy({3, 5})); });
}

TEST_CASE("Several programs as one have names of their own, and the resources that each has alone") {
  require_nvrtc();
  Compiler compiler(from_environment("JITSOFTMAX_NVRTC"), {});
  const Arch hopper{9, 0};
  std::vector<Program> programs;
  for (const plan::Specialization& candidate : plan::candidates({.cols = 16384, .in = DType::bf16}, hopper)) {
    if (candidate.config.elements <= 32 && programs.size() < 4) programs.push_back(program(candidate, hopper));
  }
  REQUIRE(programs.size() == 4);
  const std::vector<Cubin> together = compiler.compile_together(programs);
  REQUIRE(together.size() == 4);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Cubin alone = compiler.compile_for_device(programs[i]);
    CHECK(together[i].kernel == alone.kernel);
    CHECK(together[i].payload == together[0].payload);
    CHECK(together[i].resources.registers == alone.resources.registers);
    CHECK(together[i].resources.stack_bytes == alone.resources.stack_bytes);
    CHECK(together[i].resources.spill_bytes == alone.resources.spill_bytes);
  }
  programs[2].name = "no_such_kernel<1>";
  message_of(ErrorCode::compile_failed, [&] { (void)compiler.compile_together(programs); });
  CHECK(compiler.compile_together({}).empty());
}

TEST_CASE("An empty cubin is an error, never a result") {
  Compiler compiler = make();
  Program program = toy();
  program.options.back() = "--gpu-architecture=compute_90";
  has(message_of(ErrorCode::compile_failed, [&] { (void)compiler.compile(program); }), "empty");
}

TEST_CASE("A refused program is an error with NVRTC's log, and is not remembered") {
  Compiler compiler = make();
  Program program = toy();
  program.text += "\nint broken = no_such_name;";
  has(message_of(ErrorCode::compile_failed, [&] { (void)compiler.compile(program); }), "no_such_name");
  program = toy();
  program.name = "scale<";
  message_of(ErrorCode::compile_failed, [&] { (void)compiler.compile(program); });
  program = toy();
  program.options.emplace_back("--no-such-option");
  has(message_of(ErrorCode::compile_failed, [&] { (void)compiler.compile(program); }), "--no-such-option");
  CHECK_FALSE(compiler.compile(toy()).payload.empty());
}

TEST_CASE("The templates are in memory, and nothing else can be included") {
  check_child("child: compiles where files could be in the way", "--unset=CUDA_HOME --unset=CUDA_PATH");
}

TEST_CASE("child: compiles where files could be in the way" * doctest::skip()) {
  const Folder folder;
  fs::current_path(folder.path);
  write("config.cuh", "#error this file is not the library's\n");
  Compiler compiler = make();
  Program program = toy();
  program.options.emplace_back("--device-as-default-execution-space");
  program.text = "#include \"config.cuh\"\nusing jitsoftmax::kernels::Config;\n" + program.text;
  CHECK_FALSE(compiler.compile(program).payload.empty());
  for (const std::string header : {"cuda_fp16.h", "cuda_bf16.h", "cooperative_groups.h"}) {
    program.text = "#include <" + header + ">\n" + text;
    has(message_of(ErrorCode::compile_failed, [&] { (void)compiler.compile(program); }), header);
  }
  fs::current_path("/");
}

TEST_CASE("An explicit path works or is an error: there is no second choice") {
  require_nvrtc();
  const Folder folder;
  const std::string missing = (folder.path / "libnvrtc.so.99").string();
  const std::string message = message_of(ErrorCode::no_compiler, [&] { (void)Compiler(missing, {}).version(); });
  has(message, missing);
  has(message, "No such file");
  has(message, "JITSOFTMAX_NVRTC");
  has(message, "nvidia-cuda-nvrtc");

  has(message_of(ErrorCode::no_compiler, [&] { (void)Compiler(folder.path, {}).compile(toy()); }), "no libnvrtc.so.*");

  const fs::path junk = folder.path / "libnvrtc.so.13";
  write(junk, "not a library");
  has(message_of(ErrorCode::no_compiler, [&] { (void)Compiler(junk, {}).version(); }), junk.string());

  // A library, but not NVRTC.
  has(message_of(ErrorCode::no_compiler, [&] { (void)Compiler("libm.so.6", {}).version(); }), "nvrtc");
}

TEST_CASE("A failure to open is not remembered") {
  const std::string library = make().library();
  const Folder folder;
  const fs::path link = folder.path / "libnvrtc.so.13";
  Compiler compiler(link, {});
  message_of(ErrorCode::no_compiler, [&] { (void)compiler.version(); });
  fs::create_symlink(library, link);
  CHECK_FALSE(compiler.version().empty());
}

TEST_CASE("In a folder the newest library is taken, and never the alternative builds or the builtins") {
  const Folder folder;
  for (const char* name :
       {"libnvrtc.so", "libnvrtc.so.9", "libnvrtc.so.12", "libnvrtc.so.12.10", "libnvrtc.so.12.9", "libnvrtc.alt.so.13",
        "libnvrtc-builtins.so.13.0", "libnvrtc.so.alt", "libnvrtc.so.13.", "libnvrtc_static.a"})
    write(folder.path / name, "");
  std::vector<std::string> names;
  for (const std::string& file : jitsoftmax::jit::nvrtc_files(folder.path))
    names.push_back(fs::path(file).filename().string());
  CHECK_EQ(names, std::vector<std::string>{"libnvrtc.so.12.10", "libnvrtc.so.12.9", "libnvrtc.so.12", "libnvrtc.so.9",
                                           "libnvrtc.so"});
  CHECK(jitsoftmax::jit::nvrtc_files(folder.path / "none").empty());
}

// The loader's path leads to a file that is no library, so that only an absolute path can succeed.
TEST_CASE("The builtins beside NVRTC are found, by a file, by a folder and through a link") {
  Compiler compiler = make();
  const std::string library = compiler.library();
  const Folder folder;
  const fs::path decoy = folder.path / "decoy", links = folder.path / "links";
  fs::create_directories(decoy);
  fs::create_directories(links);
  write(decoy / ("libnvrtc-builtins.so." + compiler.version()), "not a library");
  fs::create_symlink(library, links / "libnvrtc.so.13");
  const std::string loader = "LD_LIBRARY_PATH='" + decoy.string() + "' NVRTC=";
  for (const std::string& path : {library, fs::path(library).parent_path().string(), links.string()})
    check_child("child: compiles with the NVRTC of a path", loader + path);
}

TEST_CASE("child: compiles with the NVRTC of a path" * doctest::skip()) {
  Compiler compiler(from_environment("NVRTC"), {});
  CHECK_FALSE(compiler.compile(toy()).payload.empty());
}

TEST_CASE("Builtins that are missing are named, with NVRTC's log and where they were looked for") {
  Compiler compiler = make();
  const Folder folder;
  const fs::path alone = folder.path / "libnvrtc.so.13", decoy = folder.path / "decoy";
  fs::create_directories(decoy);
  fs::copy_file(fs::canonical(compiler.library()), alone);
  write(decoy / ("libnvrtc-builtins.so." + compiler.version()), "not a library");
  check_child("child: reports missing builtins", "LD_LIBRARY_PATH='" + decoy.string() + "' NVRTC=" + alone.string() +
                                                     " NVRTC_VERSION=" + compiler.version());
}

TEST_CASE("child: reports missing builtins" * doctest::skip()) {
  const std::string path = from_environment("NVRTC");
  const std::string builtins = "libnvrtc-builtins.so." + from_environment("NVRTC_VERSION");
  const std::string message = message_of(ErrorCode::no_compiler, [&] { (void)Compiler(path, {}).compile(toy()); });
  has(message, path);
  has(message, "failed to open " + builtins);
  has(message, (fs::path(path).parent_path() / builtins).string());
  has(message, "nvidia-cuda-nvrtc");
}

// The process has one under the name that is tried last; any other would be found under a name before it.
TEST_CASE("An NVRTC that the process already has comes first") {
  Compiler compiler = make();
  const fs::path library = fs::canonical(compiler.library());
  const std::string builtins = "libnvrtc-builtins.so." + compiler.version();
  const Folder folder;
  std::vector<char> bytes = read(library);
  const std::string own_name = "libnvrtc.so.";
  for (auto at = bytes.begin(); (at = std::search(at, bytes.end(), own_name.begin(), own_name.end())) != bytes.end();) {
    at += static_cast<std::ptrdiff_t>(own_name.size());
    at[-1] = '\0';
  }
  const fs::path copy = folder.path / "libnvrtc.so.copy";
  std::ofstream(copy, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  fs::create_symlink(library.parent_path() / builtins, folder.path / builtins);
  check_child("child: takes the NVRTC of the process", "NVRTC=" + copy.string());
}

TEST_CASE("child: takes the NVRTC of the process" * doctest::skip()) {
  const std::string path = from_environment("NVRTC");
  REQUIRE(::dlopen(path.c_str(), RTLD_NOW) != nullptr);
  Compiler compiler("", {});
  CHECK_EQ(compiler.library(), path);
  CHECK_FALSE(compiler.compile(toy()).payload.empty());
}
