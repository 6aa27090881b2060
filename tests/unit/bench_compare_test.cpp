// Promise: a kernel that became slower, beside the copy of its run, by more than the limit is found and
// named; nothing else is; and what is no benchmark is refused with the reason.
#include "tools/bench_compare.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/bench_report.hpp"
#include "tools/exit_code.hpp"

using namespace jitsoftmax::tools;
using nlohmann::json;

namespace {

// Three shapes of an H200, five kernels.
json recorded() {
  std::ifstream file(JITSOFTMAX_RECORDED_BENCH);
  return json::parse(file);
}

BenchCells cells(const json& bench, const std::string& source = "old.json") {
  return parse_bench(bench.dump(), source);
}

// The recorded cells with the share of the first kernel multiplied.
BenchCells scaled(double factor) {
  json bench = recorded();
  json& share = bench["cases"][0]["kernels"][0]["share_of_copy"];
  share = share.get<double>() * factor;
  return cells(bench, "new.json");
}

std::string refusal(const std::string& text) {
  try {
    (void)parse_bench(text, "x.json");
  } catch (const Failure& failure) {
    CHECK(failure.exit_code() == exit_code::usage);
    return failure.what();
  }
  return "accepted";
}
std::string refusal(const std::function<void(json&)>& damage) {
  json bench = recorded();
  damage(bench);
  return refusal(bench.dump());
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string first = "4096x4096 f32 best";

}  // namespace

TEST_CASE("the same figures are no change") {
  const BenchCells before = cells(recorded());
  REQUIRE(before.cells.size() == 5);
  CHECK(before.cells[0].name == first);
  CHECK(before.device == "NVIDIA H200");
  const BenchComparison same = compare(before, before);
  CHECK(same.compared == 5);
  CHECK(same.changed.empty());
  CHECK(same.gone.empty());
  CHECK(same.added.empty());
  CHECK(slower(before, before, 0).empty());
}

TEST_CASE("what bench writes is what is compared") {
  const auto timed = [](const std::string& name, double seconds) {
    Measured measured;
    measured.name = name;
    measured.cold.rounds = {seconds};
    return measured;
  };
  BenchCase shape;
  shape.problem = {.cols = 4096};
  shape.rows = 4096;
  shape.copy = timed("copy", 9e-6);
  shape.kernels = {timed("best", 10e-6), timed("v3", 0)};
  shape.kernels[1].error = "wrong result";
  BenchReport report;
  report.device = "NVIDIA H200";
  report.cases = {shape};
  const BenchCells written = parse_bench(to_json(report), "this run");
  CHECK(written.device == "NVIDIA H200");
  REQUIRE(written.cells.size() == 2);
  CHECK(written.cells[0].name == first);
  CHECK(written.cells[0].share.value() == doctest::Approx(0.9));
  CHECK_FALSE(written.cells[1].share);
  CHECK(written.cells[1].error == "wrong result");
}

TEST_CASE("a slowdown beyond the limit is found and named, an improvement is not") {
  const BenchCells before = cells(recorded());
  const BenchCells after = scaled(0.92);
  const auto worse = slower(before, after, 0.05);
  REQUIRE(worse.size() == 1);
  CHECK(worse[0].cell == first);
  CHECK(worse[0].relative() == doctest::Approx(-0.08));
  CHECK(describe(worse, before, 0.05) == "1 cell is slower than in old.json by more than 5 %: " + first + " (-8.0 %)");
  CHECK(compare(before, after).changed.size() == 1);

  CHECK(slower(before, scaled(1.2), 0.05).empty());
  CHECK(slower(before, scaled(1.2), 0).empty());
  CHECK(compare(before, scaled(1.2)).changed.size() == 1);
}

TEST_CASE("exactly the limit is allowed, and a change of exactly 1 % is not shown") {
  const BenchChange fell{.cell = "a", .before = 0.8, .after = 0.76};
  CHECK_FALSE(fell.is_slower(0.05));
  CHECK(fell.is_slower(0.0499));
  for (const double limit : {0.0, 0.01, 0.05, 0.1, 0.3}) {
    CAPTURE(limit);
    const BenchCells before = cells(recorded());
    CHECK(slower(before, scaled(1 - limit), limit).empty());
    CHECK(slower(before, scaled(1 - limit - 1e-4), limit).size() == 1);
  }
  CHECK(compare(cells(recorded()), scaled(0.99)).changed.empty());
  CHECK(compare(cells(recorded()), scaled(0.9899)).changed.size() == 1);
  CHECK(compare(cells(recorded()), scaled(1.0101)).changed.size() == 1);
}

TEST_CASE("what one of them has alone is listed, and so is why it was not timed") {
  json bench = recorded();
  bench["cases"].erase(1);
  json& kernels = bench["cases"][0]["kernels"];
  kernels[1]["name"] = "tuned";
  kernels[2].erase("share_of_copy");
  kernels[2]["error"] = "wrong result";
  const BenchCells before = cells(recorded());
  const BenchCells after = cells(bench, "new.json");
  const BenchComparison found = compare(before, after);
  CHECK(found.compared == 2);
  CHECK(found.added == std::vector<std::string>{"4096x4096 f32 tuned"});
  REQUIRE(found.gone.size() == 3);
  CHECK(found.gone[0] == "4096x4096 f32 generic");
  CHECK(found.gone[1] == "4096x4096 f32 v1: wrong result");
  CHECK(slower(before, after, 0).empty());
  const std::string text = to_text(found, before, after);
  CHECK(mentions(text, "only in old.json:\n  4096x4096 f32 generic\n"));
  CHECK(mentions(text, "only in new.json:\n  4096x4096 f32 tuned\n"));
}

TEST_CASE("candidates that share a family's name are told apart by their specializations") {
  json bench = recorded();
  json& kernels = bench["cases"][0]["kernels"];
  for (json& kernel : kernels) kernel["name"] = "registers";
  std::reverse(kernels.begin(), kernels.end());
  json other = bench;
  std::reverse(other["cases"][0]["kernels"].begin(), other["cases"][0]["kernels"].end());
  const BenchComparison found = compare(cells(bench), cells(other));
  CHECK(found.compared == 5);
  CHECK(found.changed.empty());
  kernels.push_back(kernels[0]);
  CHECK(mentions(refusal(bench.dump()), "is there twice"));
}

TEST_CASE("what is damaged or foreign is refused with the reason") {
  const std::string whole = recorded().dump();
  CHECK(mentions(refusal(whole.substr(0, whole.size() / 2)),
                 "'x.json' is no result of jitsoftmax bench --json: it is damaged"));
  CHECK(mentions(refusal(""), "no JSON"));
  CHECK(mentions(refusal("[1, 2]"), "it is no object"));
  CHECK(mentions(refusal("null"), "it is no object"));
  CHECK(mentions(refusal("{}"), "it has no \"device\""));
  CHECK(mentions(refusal([](json& b) { b.erase("cases"); }), "it has no \"cases\""));
  CHECK(mentions(refusal([](json& b) { b["cases"] = 3; }), "\"cases\" of it is no array"));
  CHECK(mentions(refusal([](json& b) { b["cases"].clear(); }), "it has no measurement"));
  CHECK(mentions(refusal([](json& b) { b["cases"][0]["rows"] = "many"; }), "\"rows\" of 4096 f32 is no count"));
  CHECK(mentions(refusal([](json& b) { b["cases"][0]["rows"] = -1; }), "\"rows\" of 4096 f32 is no count"));
  CHECK(mentions(refusal([](json& b) { b["cases"][1] = 7; }), "a case is no object"));
  CHECK(mentions(refusal([](json& b) { b["cases"][0].erase("kernels"); }), "has no \"kernels\""));
  CHECK(mentions(refusal([](json& b) { b["cases"][0]["kernels"][0].erase("share_of_copy"); }),
                 first + " has no \"share_of_copy\""));
  CHECK(mentions(refusal([](json& b) { b["cases"][0]["kernels"][0]["share_of_copy"] = "fast"; }), "is no number"));
  CHECK(mentions(refusal([](json& b) { b["cases"][0]["kernels"][0]["share_of_copy"] = 0; }), "is no share"));
  CHECK(mentions(refusal([](json& b) { b["cases"][0]["kernels"][0]["share_of_copy"] = -0.5; }), "is no share"));
  CHECK(mentions(refusal([](json& b) { b["cases"].push_back(b["cases"][0]); }), first + " is there twice"));
}

TEST_CASE("a limit is a percentage") {
  CHECK(parse_percent("5%") == doctest::Approx(0.05));
  CHECK(parse_percent("2.5") == doctest::Approx(0.025));
  CHECK(parse_percent("0%") == 0);
  for (const char* text : {"", "%", "five", "-1%", "101%", "5 %", "5%%", "nan", "inf"}) {
    CAPTURE(text);
    try {
      (void)parse_percent(text);
      CHECK_MESSAGE(false, "accepted");
    } catch (const Failure& failure) {
      CHECK(failure.exit_code() == exit_code::usage);
      CHECK(mentions(failure.what(), "5%"));
    }
  }
}
