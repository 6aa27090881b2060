// Promise: `bench --study` verifies and times every kernel that it has, and says what they take; `autotune --json` says
// it of every kernel that it timed.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "gpu_case.hpp"
#include "program.hpp"

using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Program;
using jitsoftmax::testing::read_file;
using jitsoftmax::testing::write_file;
using nlohmann::json;

namespace {

// The GPU is to be seen.
const std::map<std::string, std::string> environment{{"CUDA_VISIBLE_DEVICES", ""}};

}  // namespace

TEST_CASE("every kernel of the study is right, timed and described") {
  const jitsoftmax::testing::Gpu gpu;
  const jitsoftmax::testing::TemporaryDirectory directory;
  write_file(directory / "shapes.txt", "1024 f32 512\n");
  const auto outcome = Program(directory,
                               {"bench", "--study", "--shapes", directory / "shapes.txt", "--rounds", "1", "--seconds",
                                "1e-4", "--json", directory / "study.json"},
                               environment)
                           .wait();
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(mentions(outcome.out, "The steps of the lesson. A copy: "));
  const json study = json::parse(read_file(directory / "study.json"));
  CHECK(study.at("memory_bus_bits") > 0);
  CHECK(study.at("cases")[0].at("kernels").size() == 16);
  for (const json& kernel : study.at("cases")[0].at("kernels")) {
    CAPTURE(kernel.dump());
    CHECK_FALSE(kernel.contains("error"));
    CHECK(kernel.at("share_of_copy") > 0);
    CHECK(kernel.at("share_of_peak") > 0);
    CHECK(kernel.at("share_of_peak") < 1);
    CHECK(kernel.at("registers") > 0);
    const bool counted = mentions(kernel.at("name").get<std::string>(), "counted");
    CHECK((kernel.at("stack_bytes") > 0) == counted);
  }
}

TEST_CASE("a tune says what every kernel takes that it timed, also when all of it is recorded") {
  const jitsoftmax::testing::Gpu gpu;
  const jitsoftmax::testing::TemporaryDirectory directory;
  write_file(directory / "shapes.txt", "1024 f32 512\n");
  for (int run = 0; run < 2; ++run) {
    const auto outcome =
        Program(directory, {"autotune", "--shapes", directory / "shapes.txt", "--json"}, environment).wait();
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    const json shape = json::parse(outcome.out).at("shapes")[0];
    for (const json& candidate : shape.at("candidates")) {
      if (!candidate.contains("median_seconds")) continue;
      CAPTURE(candidate.dump());
      CHECK(candidate.at("registers") > 0);
      CHECK(candidate.at("occupancy").at("warps") > 0);
    }
  }
}
