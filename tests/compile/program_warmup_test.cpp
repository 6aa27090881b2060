// The program with NVRTC and without a GPU: kernels are compiled once, found afterwards, and every
// failure is named.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "cache/entry.hpp"
#include "cache/store.hpp"
#include "program.hpp"
#include "tools/npy.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;
using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Outcome;

struct Bench {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string shapes = directory / "shapes.txt";
  std::string cache = directory / "cache";

  Bench() {
    jitsoftmax::testing::write_file(shapes, "128 f32\n77 bf16->f32 32 log_softmax\n");
    // Skipped, not failed, where there is no NVRTC; one that is there and does not work is a failure.
    jitsoftmax::testing::TemporaryDirectory probe;
    const Outcome outcome =
        jitsoftmax::testing::Program(probe, {"warmup", "--shapes", shapes, "--arch", "sm_90"}).wait();
    if (outcome.code == 3) std::exit(77);
  }

  Outcome run(const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& environment = {}) const {
    return jitsoftmax::testing::Program(directory, arguments, environment).wait();
  }
  nlohmann::json warmup(const std::string& archs, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"warmup", "--shapes", shapes, "--arch", archs, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.out);
  }
  [[nodiscard]] std::size_t cached_files() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache)) {
      if (!entry.is_directory()) ++count;
    }
    return count;
  }
};

constexpr const char* many_lengths = "1000..1023 f32\n";

// 0: there is no such process, or it is only waited for.
pid_t parent_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  if (!std::filesystem::exists(path)) return 0;
  const std::string stat = jitsoftmax::testing::read_file(path);  // "12 (name) S 1 ..."
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos || stat[name_end + 2] == 'Z') return 0;
  return static_cast<pid_t>(std::stol(stat.substr(name_end + 4)));
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const auto process = static_cast<pid_t>(std::stol(name)); parent_of(process) == parent)
      children.push_back(process);
  }
  return children;
}

}  // namespace

TEST_CASE("a second warmup compiles nothing, and a dry run knows") {
  const Bench bench;
  const std::vector<std::string> command{"warmup", "--shapes", bench.shapes, "--arch", "sm_80,sm_90"};
  const nlohmann::json planned = bench.warmup("sm_80,sm_90", {"--dry-run"});
  const auto total = planned.at("specializations").get<std::size_t>();
  CHECK(planned.at("to_compile") == total);
  CHECK_FALSE(std::filesystem::exists(bench.cache));

  const Outcome first = bench.run(command);
  CHECK(first.code == 0);
  CHECK_FALSE(mentions(first.err, "\r"));  // no bar where there is no terminal
  CHECK(mentions(first.out, std::to_string(total) + " specializations for 2 architectures: " + std::to_string(total) +
                                " compiled, 0 already there, 0 failed in "));
  CHECK(bench.cached_files() == total);
  CHECK(bench.run(command).out == "nothing to compile: all " + std::to_string(total) + " are in " + bench.cache + "\n");
  CHECK(bench.warmup("sm_80,sm_90", {"--dry-run"}).at("to_compile") == 0);
  CHECK(bench.warmup("sm_80,sm_90,sm_86", {"--jobs", "1"}).at("compiled") == total / 2);
}

TEST_CASE("what fails is named, the rest is compiled, and the exit code is 1") {
  const Bench bench;
  const Outcome outcome = bench.run({"warmup", "--shapes", bench.shapes, "--arch", "sm_90,sm_35"});
  CHECK(outcome.code == 1);
  CHECK(mentions(outcome.err, "jitsoftmax: error: "));
  CHECK(mentions(outcome.err, " for sm_35: "));
  CHECK_FALSE(mentions(outcome.err, " for sm_90: "));
  CHECK(mentions(outcome.out, " failed in "));
  CHECK(bench.warmup("sm_90").at("compiled") == 0);
}

TEST_CASE("a cache that cannot be used ends a warmup with 4, and does not stop a run") {
  const Bench bench;
  jitsoftmax::testing::write_file(bench.cache, "a file where the directory should be");
  const Outcome outcome = bench.run({"warmup", "--shapes", bench.shapes, "--arch", "sm_90"});
  CHECK(outcome.code == 4);
  CHECK(mentions(outcome.err, bench.cache));

  const std::string array = bench.directory / "x.npy";
  npy::write(OutputFile(array), npy::Array(npy::Header{DType::f32, {0}}));
  npy::Array one(npy::Header{DType::f32, {1}});
  one.bytes()[0] = one.bytes()[1] = one.bytes()[2] = one.bytes()[3] = std::byte{0};
  npy::write(OutputFile(array), one);
  CHECK(bench.run({"run", array, "-o", array}).code == 0);
  CHECK(bench.run({"run", array, "-o", array, "--arch", "sm_90"}).code == 4);
}

TEST_CASE("a run without a GPU compiles the kernel for the GPU that will have it, once") {
  const Bench bench;
  const std::string array = bench.directory / "x.npy";
  npy::Array ones(npy::Header{DType::f16, {3, 64}});
  for (std::byte& byte : ones.bytes()) byte = std::byte{0x3c};
  npy::write(OutputFile(array), ones);

  const Outcome first = bench.run({"run", array, "-o", bench.directory / "y.npy", "--verify"});
  CHECK(first.code == 0);
  CHECK(mentions(first.out, "compiled "));
  CHECK(mentions(first.out, " for sm_90 in "));
  CHECK(mentions(first.out, "computed on the CPU ("));
  const Outcome second = bench.run({"run", array, "-o", bench.directory / "y.npy"});
  CHECK(second.code == 0);
  CHECK_FALSE(mentions(second.out, "compiled "));
  CHECK(mentions(second.out, "found "));
  CHECK(mentions(second.out, " for sm_90 in the cache"));

  const Outcome other = bench.run({"run", array, "-o", bench.directory / "y.npy", "--arch", "sm_80", "--axis", "0"});
  CHECK(other.code == 0);
  CHECK(mentions(other.out, " for sm_80 in "));

  const Outcome unknown = bench.run({"run", array, "-o", bench.directory / "z.npy", "--arch", "sm_35"});
  CHECK(unknown.code == 1);
  CHECK(mentions(unknown.err, "sm_35"));
  CHECK_FALSE(std::filesystem::exists(bench.directory / "z.npy"));
}

TEST_CASE("a variant is compiled as it was asked for, or refused with the reason") {
  const Bench bench;
  const std::string array = bench.directory / "x.npy";
  npy::Array array_of_zeros(npy::Header{DType::f32, {4, 32}});
  for (std::byte& byte : array_of_zeros.bytes()) byte = std::byte{0};
  npy::write(OutputFile(array), array_of_zeros);
  const std::string out = bench.directory / "y.npy";
  CHECK(mentions(bench.run({"run", array, "-o", out, "--variant", "safe3"}).out, "compiled safe"));
  CHECK(bench.run({"run", array, "-o", out, "--variant", "v9"}).code == 2);
  CHECK(bench.run({"run", array, "-o", out, "--family", "round"}).code == 2);
  CHECK(bench.run({"run", array, "-o", out, "--family", "looped", "--threads", "-1"}).code == 2);
}

TEST_CASE("Ctrl-C in the middle of a warmup leaves a valid cache that a rerun completes") {
  std::string jobs;
  SUBCASE("one process") { jobs = "1"; }
  SUBCASE("several processes") { jobs = "3"; }
  const Bench bench;
  std::string text;
  for (int cols = 32; cols <= 512; cols += 32) text += std::to_string(cols) + " f32\n";
  jitsoftmax::testing::write_file(bench.shapes, text);
  const auto total = bench.warmup("sm_90", {"--dry-run"}).at("to_compile").get<std::size_t>();
  {
    jitsoftmax::testing::Program program(bench.directory,
                                         {"warmup", "--shapes", bench.shapes, "--arch", "sm_90", "--jobs", jobs});
    while (!std::filesystem::exists(bench.cache)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    program.signal(SIGINT);
    const Outcome outcome = program.wait();
    CHECK(outcome.code == 130);
    CHECK(mentions(outcome.out, " 0 failed in "));
    CHECK(mentions(outcome.err, "interrupted"));
  }
  const std::size_t files = bench.cached_files();
  CHECK(files > 0);
  CHECK(files < total);
  // What was written is valid: only the rest is compiled.
  CHECK(bench.warmup("sm_90").at("compiled") == total - files);
  CHECK(bench.cached_files() == total);
}

TEST_CASE("a process that is killed fails what it was at, and the others do the rest") {
  const Bench bench;
  jitsoftmax::testing::write_file(bench.shapes, many_lengths);
  jitsoftmax::testing::Program program(
      bench.directory, {"warmup", "--shapes", bench.shapes, "--arch", "sm_90", "--jobs", "3", "--json"});
  while (!std::filesystem::exists(bench.cache)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::vector<pid_t> compiling = children_of(program.id());
  REQUIRE(compiling.size() == 3);
  ::kill(compiling[1], SIGKILL);
  const Outcome outcome = program.wait();
  CHECK(outcome.code == 1);
  CHECK(mentions(outcome.err, "was ended by signal 9"));
  const nlohmann::json report = nlohmann::json::parse(outcome.out);
  CHECK(report.at("failed") == 1);
  CHECK(report.at("compiled").get<std::size_t>() + report.at("failed").get<std::size_t>() ==
        report.at("specializations").get<std::size_t>());
  CHECK(bench.warmup("sm_90").at("compiled") <= report.at("failed"));
}

TEST_CASE("a warmup that is killed takes its processes along") {
  const Bench bench;
  jitsoftmax::testing::write_file(bench.shapes, many_lengths);
  std::vector<pid_t> compiling;
  {
    const jitsoftmax::testing::Program program(bench.directory,
                                               {"warmup", "--shapes", bench.shapes, "--arch", "sm_90", "--jobs", "3"});
    while (!std::filesystem::exists(bench.cache)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    compiling = children_of(program.id());
    REQUIRE(compiling.size() == 3);
  }
  for (const pid_t process : compiling) {
    CAPTURE(process);
    bool gone = false;
    for (int i = 0; i < 500 && !gone; ++i) {
      gone = parent_of(process) == 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(gone);
  }
}

TEST_CASE("what several processes have to say is said once") {
  const Bench bench;
  jitsoftmax::testing::write_file(bench.shapes, many_lengths);
  const std::string layer = bench.directory / "layer";
  std::filesystem::create_directory(layer);
  std::filesystem::permissions(layer, std::filesystem::perms::all);
  const Outcome outcome = bench.run({"warmup", "--shapes", bench.shapes, "--arch", "sm_90", "--jobs", "3"},
                                    {{"JITSOFTMAX_CACHE_LAYERS", layer}});
  CHECK(outcome.code == 0);
  const std::size_t first = outcome.err.find("writable by ");
  CHECK(first != std::string::npos);
  CHECK(outcome.err.find("writable by ", first + 1) == std::string::npos);
}

TEST_CASE("a refresh compiles what another NVRTC made, once, and nothing else") {
  const Bench bench;
  const std::size_t total = bench.warmup("sm_90").at("compiled");
  // One of them as an older NVRTC left it.
  std::string path;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bench.cache))
    if (entry.is_regular_file()) path = entry.path();
  const std::string bytes = jitsoftmax::testing::read_file(path);
  const auto read = cache::inspect(bytes);
  cache::Description old = std::get<cache::Description>(read);
  const std::string current = old.cubin.compiler;
  old.cubin.compiler = "1.0";
  REQUIRE(cache::Store({.directory = bench.cache}).put(old.key, old.program, old.cubin));

  CHECK(bench.warmup("sm_90").at("cached") == total);  // it is a hit
  CHECK(bench.warmup("sm_90", {"--dry-run"}).at("to_compile") == 0);
  const nlohmann::json planned = bench.warmup("sm_90", {"--dry-run", "--refresh"});
  CHECK(planned.at("to_compile") == 1);
  CHECK(planned.at("estimated_bytes") > 1000);
  CHECK(planned.at("estimated_seconds") > 0);
  const nlohmann::json refreshed = bench.warmup("sm_90", {"--refresh"});
  CHECK(refreshed.at("compiled") == 1);
  CHECK(refreshed.at("cached") == total - 1);
  const std::string renewed = jitsoftmax::testing::read_file(path);
  CHECK(std::get<cache::Description>(cache::inspect(renewed)).cubin.compiler == current);
  CHECK(bench.warmup("sm_90", {"--refresh"}).at("compiled") == 0);

  // In a layer, which comes first, it cannot be replaced.
  REQUIRE(cache::Store({.directory = bench.cache}).put(old.key, old.program, old.cubin));
  const std::string layer = bench.directory / "layer";
  std::filesystem::rename(bench.cache, layer);
  const Outcome outcome = bench.run({"warmup", "--shapes", bench.shapes, "--arch", "sm_90", "--refresh"},
                                    {{"JITSOFTMAX_CACHE_LAYERS", layer}});
  CHECK(outcome.code == 1);
  CHECK(mentions(outcome.err, "in the read-only layer " + layer));
  CHECK(mentions(outcome.out, std::to_string(total - 1) + " already there, 1 failed"));
}
