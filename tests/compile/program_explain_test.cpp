// Promise: `explain` names the kernel that a launch of these rows runs, and what it takes, without a GPU;
// what it compiles is in the cache afterwards.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/choice.hpp"
#include "plan/specialization.hpp"
#include "program.hpp"

namespace {

using namespace jitsoftmax;
using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Outcome;
using nlohmann::json;

struct Explained {
  jitsoftmax::testing::TemporaryDirectory directory;

  // Skipped, not failed, where there is no NVRTC.
  Explained() {
    const jitsoftmax::testing::TemporaryDirectory probe;
    if (jitsoftmax::testing::Program(probe, {"explain", "64", "f32"}).wait().code == 3) std::exit(77);
  }
  Outcome run(std::vector<std::string> arguments, const std::map<std::string, std::string>& environment = {}) const {
    arguments.insert(arguments.begin(), "explain");
    return jitsoftmax::testing::Program(directory, arguments, environment).wait();
  }
  json parsed(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const Outcome outcome = run(arguments);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
  }
};

std::vector<std::string> names_of(const json& explained) {
  std::vector<std::string> names;
  for (const json& kernel : explained.at("kernels")) names.push_back(kernel.at("specialization").get<std::string>());
  return names;
}

}  // namespace

TEST_CASE("it names the members of the bundle that serve these rows, on this architecture") {
  const Explained program;
  const Problem long_rows{.cols = 16384};
  const plan::Bundle bundle = plan::choose(long_rows, {9, 0});
  REQUIRE(bundle.size() == 4);  // few rows and any number, aligned and not
  const auto name = [&](std::size_t member) { return plan::name_expression(bundle[member]); };

  const json few = program.parsed({"16384", "f32", "8"});
  CHECK(names_of(few) == std::vector<std::string>{name(0), name(1)});
  CHECK(few.at("arch") == "sm_90");  // no GPU here
  CHECK(few.at("device").is_null());
  CHECK(few.at("bytes") == 8 * 16384 * 8);
  CHECK(few.at("kernels")[0].at("most_rows") == 64);
  CHECK(few.at("kernels")[0].at("aligned_rows") == true);
  CHECK(few.at("kernels")[0].at("other_rows") == false);
  CHECK(few.at("kernels")[1].at("aligned_rows") == false);
  CHECK(few.at("kernels")[1].at("other_rows") == true);
  CHECK(few.at("kernels")[0].at("grid_blocks") == 8 * bundle[0].config.cluster);

  const json many = program.parsed({"16384", "f32", "65"});
  CHECK(names_of(many) == std::vector<std::string>{name(2), name(3)});
  CHECK(many.at("kernels")[0].at("most_rows").is_null());

  const plan::Bundle older = plan::choose(long_rows, {8, 0});
  CHECK(names_of(program.parsed({"16384", "f32", "8", "--arch", "sm_80"}))[0] == plan::name_expression(older[0]));
}

TEST_CASE("options and the words of a shapes file mean the same") {
  const Explained program;
  const json words = program.parsed({"100", "f32->f16", "32", "log_softmax", "strided"});
  const json options = program.parsed({"100", "f32->f16", "32", "--op", "log_softmax", "--strided"});
  CHECK(words.at("problem") == "100 f32->f16 log_softmax strided");
  CHECK(names_of(words) == names_of(options));
  CHECK(words.at("kernels").size() == 1);  // an element is always aligned
  CHECK(words.at("kernels")[0].at("aligned_rows") == true);
  CHECK(words.at("kernels")[0].at("other_rows") == true);
}

TEST_CASE("it says what the code takes and how much of a multiprocessor that is") {
  const Explained program;
  const json kernel = program.parsed({"4096", "f32", "4096"}).at("kernels")[0];
  const int registers = kernel.at("registers").get<int>();
  const int threads = kernel.at("threads_a_row").get<int>();
  CHECK(registers >= kernel.at("packets_a_thread").get<int>() * kernel.at("elements_a_packet").get<int>());
  CHECK(registers <= 255);
  CHECK(kernel.at("stack_bytes") == 0);
  CHECK(kernel.at("spill_bytes") == 0);
  CHECK(kernel.at("shared_bytes") > 0);
  CHECK(kernel.at("chosen_by") == "built_in");
  const json& occupancy = kernel.at("occupancy");
  const int blocks = occupancy.at("blocks").get<int>();
  CHECK(blocks >= 1);
  CHECK(blocks * threads * registers <= 65536);
  CHECK(occupancy.at("warps") == blocks * threads / 32);
  CHECK(occupancy.at("bytes_in_flight") == blocks * 4096 * 4);

  const std::string text = program.run({"4096", "f32", "4096"}).out;
  CHECK(mentions(text, "4096 f32, 4096 rows, for sm_90\n134217728 bytes to move"));
  CHECK(mentions(text, "the built-in rules for 4096 f32 on sm_90, for any number of rows"));
  CHECK(mentions(text, std::to_string(registers) + " registers a thread"));
  CHECK(mentions(text, "no local memory"));
  CHECK(mentions(text, "at most " + std::to_string(blocks) + " blocks, "));
}

TEST_CASE("what was compiled is in the cache afterwards, and then no NVRTC is needed") {
  const Explained program;
  CHECK(program.parsed({"77", "bf16"}).at("kernels")[0].at("compiled") == true);
  const Outcome again = program.run({"77", "bf16", "--json"}, {{"JITSOFTMAX_NVRTC", "/nowhere/libnvrtc.so"}});
  REQUIRE(again.code == 0);
  CHECK(json::parse(again.out).at("kernels")[0].at("compiled") == false);
  // No cache directory is no reason to fail.
  const Outcome nowhere = program.run({"77", "bf16", "--cache-dir", "", "--json"});
  REQUIRE(nowhere.code == 0);
  CHECK(json::parse(nowhere.out).at("kernels")[0].at("compiled") == true);
}

TEST_CASE("PTX is that of the architecture that was asked for") {
  const Explained program;
  const json kernels = program.parsed({"128", "f32", "--ptx", "--arch", "sm_80"}).at("kernels");
  REQUIRE(kernels.size() == 2);
  for (const json& kernel : kernels) CHECK(mentions(kernel.at("ptx").get<std::string>(), ".target sm_80"));
  CHECK(mentions(program.run({"128", "f32", "--ptx"}).out, ".entry "));
  CHECK_FALSE(mentions(program.run({"128", "f32"}).out, ".entry "));
  CHECK(program.run({"128", "f32", "--arch", "sm_35"}).code == 2);
}

TEST_CASE("a kernel is explained by its spelling, as bench prints it") {
  const Explained program;
  const std::string spelling =
      "registers<Config{.threads=256,.rows=1,.vector=4,.elements=16,.aligned=true,.shared=64},Static<4096>,float,float,"
      "Softmax>";
  const json explained = program.parsed({"4096", "f32", "4096", "--kernel", spelling});
  CHECK(names_of(explained)[0] == spelling);
  CHECK(explained.at("kernels")[0].at("chosen_by") == "spelling");
  CHECK(explained.at("kernels")[0].at("predicted_share_of_copy") > 0.8);
  const Outcome other = program.run({"4097", "f32", "4096", "--kernel", spelling});
  CHECK(other.code == 2);
  CHECK(mentions(other.err, "is no kernel that this library makes for 4097 f32"));
}

TEST_CASE("only where there is a model is anything predicted") {
  const Explained program;
  CHECK(program.parsed({"4096", "f32", "4096"}).at("kernels")[0].contains("predicted_share_of_copy"));
  CHECK_FALSE(program.parsed({"4096", "f32", "--arch", "sm_80"}).at("kernels")[0].contains("predicted_share_of_copy"));
}

TEST_CASE("SASS is what a disassembler on PATH makes of the cubin") {
  const Explained program;
  const std::string folder = program.directory / "bin";
  std::filesystem::create_directory(folder);
  const auto install = [&](const char* name, const std::string& script) {
    jitsoftmax::testing::write_file(folder + "/" + name, "#!/bin/sh\n" + script);
    std::filesystem::permissions(folder + "/" + name, std::filesystem::perms::owner_all);
  };
  const auto sass = [&] {
    return program.run({"77", "f32", "--sass", "--json"}, {{"PATH", folder + ":/usr/bin:/bin"}});
  };
  install("cuobjdump", "echo $1; head -c 4 \"$2\" | tail -c 3\n");
  CHECK(json::parse(sass().out).at("kernels")[0].at("sass") == "-sass\nELF");
  install("nvdisasm", "echo $1; head -c 4 \"$2\" | tail -c 3; echo; echo \"$2\" > " + folder + "/file\n");
  CHECK(json::parse(sass().out).at("kernels")[0].at("sass") == "-c\nELF\n");
  const std::string file = jitsoftmax::testing::read_file(folder + "/file");
  CHECK_FALSE(std::filesystem::exists(file.substr(0, file.size() - 1)));  // nothing is left behind
  install("nvdisasm", "echo out of order; exit 3\n");
  const Outcome broken = sass();
  CHECK(broken.code == 1);
  CHECK(mentions(broken.err, "nvdisasm -c "));
  CHECK(mentions(broken.err, "failed: out of order"));
  // That there is none is said where it was looked for, with what to install.
  if (std::filesystem::exists("/usr/local/cuda/bin/nvdisasm")) return;
  if (std::filesystem::exists("/usr/local/cuda/bin/cuobjdump")) return;
  const Outcome none =
      program.run({"77", "f32", "--sass"}, {{"PATH", "/nowhere"}, {"CUDA_HOME", "/toolkit"}, {"CUDA_PATH", ""}});
  CHECK(none.code == 1);
  CHECK(mentions(none.err, "neither is in /nowhere, /toolkit/bin, /usr/local/cuda/bin. Install the package "));
}
