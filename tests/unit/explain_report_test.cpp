// Promise: what `explain` says names who chose a kernel and for how many rows, and claims nothing that is
// not known: neither what PTX takes, nor the occupancy of an architecture without a table.
#include "tools/explain_report.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "plan/candidates.hpp"
#include "plan/prediction.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::tools;
using nlohmann::json;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Explanation example() {
  Explanation explanation;
  explanation.problem = {.cols = 4096};
  explanation.rows = 1;
  explanation.bytes = 32768;
  explanation.choice = {.arch = {9, 0}, .device = "NVIDIA H200", .bundle = {}};
  ExplainedKernel kernel;
  kernel.specialization = plan::specialization(explanation.problem, plan::Family::registers,
                                               {.threads = 256, .cluster = 2, .vector = 4, .elements = 8});
  kernel.for_aligned = true;
  kernel.cubin.compiler = "13.0";
  kernel.cubin.resources = {.registers = 40};
  kernel.occupancy = plan::Occupancy{.blocks = 6, .warps = 48, .bound = plan::Bound::registers};
  kernel.blocks = 2;
  explanation.kernels = {kernel};
  return explanation;
}

}  // namespace

TEST_CASE("a record's pick is told from the built-in choice, and few rows from any number") {
  Explanation explanation = example();
  CHECK(mentions(to_text(explanation), "4096 f32, 1 row, for NVIDIA H200 (sm_90)\n"));
  CHECK(mentions(to_text(explanation), "the built-in rules for 4096 f32 on sm_90, for any number of rows"));
  CHECK(json::parse(to_json(explanation)).at("kernels")[0].at("chosen_by") == "built_in");
  explanation.kernels[0].specialization.origin = Origin::record;
  explanation.kernels[0].specialization.most_rows = 64;
  CHECK(mentions(to_text(explanation), "a tuning record of NVIDIA H200, for at most 64 rows"));
  const json kernel = json::parse(to_json(explanation)).at("kernels")[0];
  CHECK(kernel.at("chosen_by") == "record");
  CHECK(kernel.at("most_rows") == 64);
}

TEST_CASE("threads, packets and bytes in flight are those of the specialization") {
  const std::string text = to_text(example());
  CHECK(mentions(text,
                 "512 threads a row, in a cluster of 2 blocks, each with 2 packets of 4 elements; 1 row a cluster"));
  CHECK(mentions(text, "at most 6 blocks, 48 warps a multiprocessor, bounded by registers: 49152 bytes in flight"));
  CHECK(mentions(text, "40 registers a thread"));
  CHECK(mentions(text, "no local memory"));
}

TEST_CASE("local memory is shown") {
  Explanation explanation = example();
  explanation.kernels[0].cubin.resources.stack_bytes = 24;
  explanation.kernels[0].cubin.resources.spill_bytes = 8;
  CHECK(mentions(to_text(explanation), "local memory: 24 bytes of stack, 8 spilled"));
}

TEST_CASE("what is not known is left out") {
  Explanation explanation = example();
  explanation.kernels[0].occupancy.reset();
  explanation.choice.arch = {7, 5};
  CHECK(mentions(to_text(explanation), "not known: no table of sm_75"));
  CHECK_FALSE(json::parse(to_json(explanation)).at("kernels")[0].contains("occupancy"));

  explanation.kernels[0].cubin.kind = jit::PayloadKind::ptx;
  const std::string text = to_text(explanation);
  CHECK(mentions(text, "as PTX: what it takes is known when the driver has compiled it"));
  CHECK_FALSE(mentions(text, "registers a thread"));
  CHECK_FALSE(json::parse(to_json(explanation)).at("kernels")[0].contains("registers"));
}

TEST_CASE("a prediction is never without how wrong such predictions were") {
  Explanation explanation = example();
  CHECK_FALSE(mentions(to_text(explanation), "predicted"));
  CHECK_FALSE(json::parse(to_json(explanation)).at("kernels")[0].contains("predicted_share_of_copy"));
  explanation.kernels[0].predicted = 0.957;
  const std::string text = to_text(explanation);
  CHECK(mentions(text, "0.96 of a copy's speed: a model of one H200. Of "));
  const auto percent = [](double share) { return std::to_string(std::lround(100 * share)) + " %"; };
  CHECK(mentions(text, std::to_string(plan::error_of_choices.kernels) +
                           " built-in choices that were measured half are within " +
                           percent(plan::error_of_choices.median)));
  CHECK(mentions(text, "off by more than " + percent(plan::error_of_candidates.p90)));
  CHECK(json::parse(to_json(explanation)).at("kernels")[0].at("predicted_share_of_copy") == 0.957);
}

TEST_CASE("listings follow the figures, each under the name of its kernel") {
  Explanation explanation = example();
  explanation.kernels[0].ptx = ".entry\n";
  explanation.kernels[0].sass = "EXIT ;\n";
  const std::string text = to_text(explanation);
  const std::string name = plan::name_expression(explanation.kernels[0].specialization);
  CHECK(mentions(text, "\nPTX of " + name + ":\n.entry\n"));
  CHECK(mentions(text, "\nSASS of " + name + ":\nEXIT ;\n"));
  CHECK(json::parse(to_json(explanation)).at("kernels")[0].at("sass") == "EXIT ;\n");
}

TEST_CASE("a kernel that was asked for by its spelling is nobody's choice") {
  Explanation explanation = example();
  explanation.kernels[0].specialization.origin = Origin::variant;
  CHECK(mentions(to_text(explanation), "chosen by  its spelling, for any number of rows"));
  CHECK(json::parse(to_json(explanation)).at("kernels")[0].at("chosen_by") == "spelling");
}
