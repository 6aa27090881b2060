// `jitsoftmax run --on-miss`: what becomes of a kernel that no cache has. On a GPU that a stand-in for the driver has;
// there is no NVRTC, so that a compile that is tried ends with 3.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "program.hpp"
#include "tools/npy.hpp"

namespace {

using namespace jitsoftmax;
using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Outcome;

struct Runs {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string in = directory / "in.npy";
  std::string out = directory / "out.npy";

  Runs() { tools::npy::write(tools::OutputFile(in), tools::npy::Array(tools::npy::Header{DType::f32, {2, 1000}})); }

  Outcome run(const std::vector<std::string>& arguments, const std::string& on_miss_of_environment = "",
              bool with_gpu = true) const {
    std::vector<std::string> all{"run", in, "-o", out};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return jitsoftmax::testing::Program(
               directory, all,
               {{"JITSOFTMAX_NVRTC", directory / "no-libnvrtc.so"},
                {"JITSOFTMAX_ON_MISS", on_miss_of_environment},
                {"LD_LIBRARY_PATH", with_gpu ? JITSOFTMAX_STAND_IN_DIRECTORY : "/nonexistent"}})
        .wait();
  }
};

}  // namespace

TEST_CASE("--on-miss fail: 4, the kernel and what adds it, and no output") {
  const Runs runs;
  const Outcome outcome = runs.run({"--on-miss", "fail"});
  CHECK(outcome.code == 4);
  for (const char* part : {"registers<", "Static<1000>", "sm_90", "on_miss is 'fail'", "warmup"}) {
    CAPTURE(std::string(part));
    CHECK(mentions(outcome.err, part));
  }
  CHECK_FALSE(std::filesystem::exists(runs.out));
}

TEST_CASE("it wins over the environment, either way; without it the environment is asked") {
  const Runs runs;
  CHECK(runs.run({}).code == 3);
  CHECK(runs.run({}, "fail").code == 4);
  CHECK(runs.run({"--on-miss", "compile"}, "fail").code == 3);
  CHECK(runs.run({"--on-miss", "fail"}, "compile").code == 4);
}

TEST_CASE("without a GPU nothing is missing: the CPU computes, and says why it compiled no kernel") {
  const Runs runs;
  const Outcome outcome = runs.run({"--on-miss", "fail", "--verbose"}, "", false);
  CHECK(outcome.code == 0);
  CHECK(mentions(outcome.out, "compiled no kernel: --on-miss is 'fail'"));
  CHECK(mentions(runs.run({"--verbose"}, "fail", false).out, "compiled no kernel: JITSOFTMAX_ON_MISS is 'fail'"));
}

TEST_CASE("anything else is no way to treat a miss") {
  const Runs runs;
  for (const char* value : {"background", "perhaps", ""}) {
    CAPTURE(std::string(value));
    const Outcome outcome = runs.run({"--on-miss", value});
    CHECK(outcome.code == 2);
    CHECK(mentions(outcome.err, "--on-miss"));
  }
}
