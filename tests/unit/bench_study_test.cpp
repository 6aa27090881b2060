// Promise: the study measures every step of the lesson and every pair of kernels that keep a row in registers, says
// what of the theoretical bandwidth that is, and refuses what it is not for before it needs a GPU.
#include "tools/bench_study.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/choice.hpp"
#include "program.hpp"
#include "tools/bench_cells.hpp"
#include "tools/exit_code.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::tools;
using jitsoftmax::testing::mentions;
using nlohmann::json;

namespace {

const Problem lesson{.cols = 4096};

std::vector<std::string> names(const Problem& problem) {
  std::vector<std::string> result;
  for (const StudyKernel& kernel : study_kernels(problem)) result.push_back(kernel.name);
  return result;
}

// Each kernel takes a microsecond more than the one before, the copy 32.
BenchReport measured(const std::vector<StudyKernel>& kernels) {
  BenchReport report;
  report.device = "NVIDIA H200";
  report.memory_clock_mhz = 3201;
  report.memory_bus_bits = 6144;
  BenchCase result{.problem = lesson, .rows = 4096, .bytes = 4096 * 4096 * 8, .copy = {}, .clocks = {}, .kernels = {}};
  result.copy.cold.rounds = {32e-6};
  double seconds = 40e-6;
  for (const StudyKernel& kernel : kernels) {
    Measured one;
    one.name = kernel.name;
    one.kernel = kernel.name + "<...>";
    one.cold.rounds = {seconds += 1e-6};
    one.facts = KernelFacts{.used = {.registers = 40, .stack_bytes = mentions(kernel.name, "counted") ? 72U : 0U},
                            .occupancy = {}};
    result.kernels.push_back(one);
  }
  report.cases.push_back(result);
  return report;
}

}  // namespace

TEST_CASE("it has the steps of the lesson, and pairs of kernels for every number of elements") {
  CHECK(names(lesson) == std::vector<std::string>{"safe3", "v0", "v1", "v2", "v3", "v4", "registers 4", "counted 4",
                                                  "registers 8", "counted 8", "registers 16", "counted 16",
                                                  "registers 32", "counted 32", "registers 64", "counted 64"});
  // What a block has no threads for, and what is less than an access, is left out.
  CHECK(names({.cols = 32768}).back() == "counted 64");
  CHECK(names({.cols = 32768})[6] == "registers 32");
  CHECK(names({.cols = 4096, .in = DType::bf16, .out = DType::bf16})[6] == "registers 8");
}

TEST_CASE("every kernel of it is legal, and those of a pair differ in what the compiler knows") {
  for (const std::int64_t cols : {1, 7, 100, 333, 4096, 4097, 50257}) {
    for (const DType type : {DType::bf16, DType::f32, DType::f64}) {
      const Problem problem{.cols = cols, .in = type, .out = type};
      for (const StudyKernel& kernel : study_kernels(problem)) {
        if (kernel.name == "v3" && cols > 8192) continue;
        CAPTURE(kernel.name);
        CAPTURE(plan::describe(problem));
        const plan::Specialization s = plan::choose(problem, {9, 0}, kernel.variant).front();
        CHECK(mentions(plan::name_expression(s), "Runtime") == mentions(kernel.name, "counted"));
        if (kernel.elements) CHECK(s.config.elements == *kernel.elements);
      }
    }
  }
}

TEST_CASE("shares are of the copy, and of the bus's width times its clock") {
  const std::vector<StudyKernel> kernels = study_kernels(lesson);
  const BenchReport report = measured(kernels);
  CHECK(report.peak_bytes_a_second() == doctest::Approx(6144 / 8 * 3201e6 * 2));
  const json study = json::parse(study_json(report, kernels));
  const json& first = study.at("cases")[0].at("kernels")[0];
  CHECK(first.at("share_of_copy").get<double>() == doctest::Approx(32.0 / 41));
  CHECK(first.at("share_of_peak").get<double>() == doctest::Approx(4096.0 * 4096 * 8 / 41e-6 / 4.916736e12));
  CHECK(first.at("bytes_asked_for") == 4096 * 4096 * 16);  // three reads and a write
  CHECK(first.at("options") == json{"--variant", "safe3"});
  CHECK_FALSE(first.contains("share_of_peak_on_a100"));
  CHECK(study.at("cases")[0].at("kernels")[1].at("share_of_peak_on_a100") == 0.07);
  CHECK(study.at("cases")[0].at("kernels")[7].at("options") ==
        json{"--family", "counted", "--threads", "1024", "--rows", "1", "--vector", "4", "--elements", "4"});
  // It is a benchmark like any other, which --compare takes.
  CHECK(parse_bench(study.dump(), "study.json").cells.size() == kernels.size());
}

TEST_CASE("the table has a line a step and a line a number of elements") {
  const std::vector<StudyKernel> kernels = study_kernels(lesson);
  BenchReport report = measured(kernels);
  const std::string text = study_text(report, kernels);
  CHECK(mentions(text, "A copy: 32.00 us, 85 % of the theoretical 4.92 TB/s"));
  CHECK(mentions(text, "v1           43.00        0.744         63 %         58 %        201        40      0\n"));
  CHECK(mentions(text, "      16     256     51.00   0.627        40      0      52.00   0.615        40     72\n"));
  report.cases[0].kernels[2].error = "no room";
  report.cases[0].kernels[2].cold.rounds.clear();
  CHECK(mentions(study_text(report, kernels), "v1       no room\n"));
  CHECK_FALSE(json::parse(study_json(report, kernels)).at("cases")[0].at("kernels")[2].contains("share_of_peak"));
}

TEST_CASE("what it is not for is a usage error, and without a GPU it ends with 5") {
  const jitsoftmax::testing::TemporaryDirectory directory;
  const auto run = [&](const std::string& shapes, std::vector<std::string> more) {
    std::vector<std::string> arguments{"bench", "--study"};
    if (!shapes.empty()) {
      jitsoftmax::testing::write_file(directory / "shapes.txt", shapes);
      arguments.insert(arguments.end(), {"--shapes", directory / "shapes.txt"});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return jitsoftmax::testing::Program(directory, arguments).wait();
  };
  CHECK(mentions(run("64 f32\n128 f32\n", {}).err, "--study is of one shape; the shapes file has 2"));
  CHECK(run("64 f32\n128 f32\n", {}).code == exit_code::usage);
  CHECK(run("64 f32 strided\n", {}).code == exit_code::usage);
  CHECK(run("", {"--variant", "v1"}).code == exit_code::usage);
  CHECK(run("", {}).code == exit_code::no_gpu);
  CHECK(run("8192 bf16 2048\n", {}).code == exit_code::no_gpu);
}
