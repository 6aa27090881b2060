// `jitsoftmax cache` without GPU and without NVRTC: it says what is in the cache directories, and its
// exit codes say whether that is in order.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "cache_fixtures.hpp"
#include "program.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Outcome;
using jitsoftmax::testing::read_file;
using jitsoftmax::testing::write_file;
using nlohmann::json;
namespace fs = std::filesystem;

struct Bench {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string cache = directory / "cache";
  std::string layer = directory / "layer";

  Outcome run(std::vector<std::string> arguments, std::map<std::string, std::string> environment = {}) const {
    arguments.insert(arguments.begin(), "cache");
    environment.try_emplace("JITSOFTMAX_CACHE_LAYERS", layer);
    return jitsoftmax::testing::Program(directory, arguments, environment).wait();
  }
  json run_json(std::vector<std::string> arguments, int code = 0) const {
    arguments.emplace_back("--json");
    const Outcome outcome = run(arguments);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == code);
    return json::parse(outcome.out);
  }
  // The path of a new entry.
  static std::string put(const std::string& where, int cols) {
    const jit::Program program = sample_program(cols);
    REQUIRE(cache::Store({.directory = where}).put(fixtures::key_of(program), program, sample_cubin()));
    return cache::entry_path(where, fixtures::key_of(program));
  }
};

}  // namespace

TEST_CASE("path names every directory and says why it is used or not") {
  const Bench bench;
  Bench::put(bench.layer, 1);
  const Outcome outcome = bench.run({"path"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out == "read-only  " + bench.layer +
                           ": trusted: it belongs to this user, and nobody else may write to it\nwritable   " +
                           bench.cache + ": missing: it is not there; the first kernel that is compiled creates it\n");
  CHECK_FALSE(fs::exists(bench.cache));

  fs::permissions(bench.layer, fs::perms{0777});
  fs::create_directory_symlink(bench.layer, bench.cache);
  const json directories = bench.run_json({"path"}).at("directories");
  REQUIRE(directories.size() == 2);
  CHECK(directories[0].at("standing") == "refused");
  CHECK(mentions(directories[0].at("reason"), "writable by everybody (chmod go-w)"));
  CHECK(directories[1].at("kind") == "writable");
  CHECK(directories[1].at("reason") == "is a symbolic link");

  CHECK(mentions(bench.run({"path", "--cache-dir", ""}).out, "no writable directory"));
}

TEST_CASE("list has every readable entry of every directory, with what it is") {
  const Bench bench;
  Bench::put(bench.layer, 1);
  const std::string own = Bench::put(bench.cache, 2);
  const std::string damaged = Bench::put(bench.cache, 3);
  write_file(damaged, "damaged");
  const json listed = bench.run_json({"list"});
  CHECK(listed.at("unreadable") == 1);
  REQUIRE(listed.at("entries").size() == 2);
  const json& first = listed.at("entries")[0];
  const json& second = listed.at("entries")[1];
  CHECK(first.at("directory") == bench.layer);
  CHECK(first.at("kind") == "read-only");
  CHECK(first.at("last_used").is_null());
  CHECK(second.at("kernel") == sample_program(2).name);
  CHECK(second.at("arch") == "sm_90a");
  CHECK(second.at("nvrtc") == "13.0");
  CHECK(second.at("bytes") == fs::file_size(own));
  CHECK(second.at("path") == own);
  CHECK(second.at("last_used").get<std::string>().starts_with("20"));
  CHECK(second.at("other_version") == false);

  const Outcome outcome = bench.run({"list"});
  CHECK(outcome.code == 0);
  CHECK(mentions(outcome.out, bench.layer + " (read-only): 1 entry, "));
  CHECK(mentions(outcome.out, sample_program(1).name));
  CHECK(mentions(outcome.out, "sm_90a   NVRTC 13.0"));
  CHECK(mentions(outcome.out, "not shown: 1 path; see jitsoftmax cache verify"));
  CHECK(read_file(damaged) == "damaged");
}

TEST_CASE("a directory that is not there is empty and stays so") {
  const Bench bench;
  for (const char* command : {"list"}) {
    const Outcome outcome = bench.run({command});
    CHECK(outcome.code == 0);
    CHECK(mentions(outcome.out, "0 entries"));
  }
  CHECK_FALSE(fs::exists(bench.cache));
}

TEST_CASE("a command line that makes no sense ends with 2") {
  const Bench bench;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{}, {"burn"}, {"list", "--fast"}, {"path", "extra"}}) {
    const Outcome outcome = bench.run(arguments);
    CAPTURE(arguments.empty() ? "nothing" : arguments.back());
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("jitsoftmax: error: "));
  }
}
