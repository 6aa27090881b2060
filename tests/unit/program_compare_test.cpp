// Promise: `bench --compare` needs no GPU where both results are given, ends with 6 where a kernel became
// too slow and names it, and with 2 where a file makes no sense.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"

namespace {

using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Outcome;
using jitsoftmax::testing::Program;
using nlohmann::json;

struct Bench {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string before = JITSOFTMAX_RECORDED_BENCH;
  std::string after = directory / "new.json";

  // The recorded result, the first kernel's share multiplied.
  explicit Bench(double factor = 1) {
    std::ifstream file(before);
    json bench = json::parse(file);
    json& share = bench["cases"][0]["kernels"][0]["share_of_copy"];
    share = share.get<double>() * factor;
    jitsoftmax::testing::write_file(after, bench.dump());
  }

  // On a machine without NVRTC, wherever this runs.
  Outcome run(const std::vector<std::string>& arguments) const {
    return Program(directory, arguments, {{"JITSOFTMAX_NVRTC", directory / "no-libnvrtc.so"}}).wait();
  }
  Outcome compare(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"bench", "--compare", before, "--with", after};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

}  // namespace

TEST_CASE("a planted slowdown ends with 6 and is named") {
  const Bench bench(0.9);
  const Outcome outcome = bench.compare({"--fail-above", "5%"});
  CHECK(outcome.code == 6);
  CHECK(mentions(outcome.err, "1 cell is slower than in " + bench.before));
  CHECK(mentions(outcome.err, "4096x4096 f32 best (-10.0 %)"));
  CHECK(mentions(outcome.out, "5 cells compared, 1 changed by more than 1 %"));
  CHECK(mentions(outcome.out, "4096x4096 f32 best"));
  CHECK_FALSE(mentions(outcome.out, "generic"));

  CHECK(bench.compare({"--fail-above", "12%"}).code == 0);
  const Outcome shown = bench.compare();  // without a limit nothing fails
  CHECK(shown.code == 0);
  CHECK(shown.out == outcome.out);
}

TEST_CASE("an improvement, and no change, end with 0") {
  const Outcome faster = Bench(1.1).compare({"--fail-above", "5%"});
  CHECK(faster.code == 0);
  CHECK(faster.err.empty());
  CHECK(mentions(faster.out, "+10.0 %"));
  CHECK(mentions(Bench().compare({"--fail-above", "0%"}).out, "5 cells compared, 0 changed"));
}

TEST_CASE("a comparison that makes no sense is a usage error that says why") {
  const Bench bench;
  jitsoftmax::testing::write_file(bench.after, "{\"device\": ");
  const Outcome damaged = bench.compare();
  CHECK(damaged.code == 2);
  CHECK(mentions(damaged.err, bench.after));
  CHECK(mentions(damaged.err, "damaged"));
  const std::string missing = bench.directory / "missing.json";
  CHECK(mentions(bench.run({"bench", "--compare", bench.before, "--with", missing}).err, missing));
  // The old result is read before anything is measured, and so before a GPU is missed.
  CHECK(bench.run({"bench", "--compare", missing, "--shapes", missing}).code == 2);
  const Outcome nothing = bench.run({"bench"});
  CHECK(nothing.code == 2);
  CHECK(mentions(nothing.err, "--shapes FILE"));
  CHECK(bench.run({"bench", "--compare", bench.before}).code == 2);
  CHECK(bench.run({"bench", "--with", bench.before}).code == 2);
  CHECK(bench.run({"bench", "--compare", bench.before, "--with", bench.before, "--shapes", "x"}).code == 2);
  CHECK(bench.run({"bench", "--fail-above", "5%", "--shapes", "x"}).code == 2);
  CHECK(bench.run({"bench", "--compare", bench.before, "--with", bench.before, "--fail-above", "much"}).code == 2);
}
