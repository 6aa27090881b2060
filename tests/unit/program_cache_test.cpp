// `jitsoftmax cache` without GPU and without NVRTC: it says what is in the cache directories, and its
// exit codes say whether that is in order.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/warmup.hpp"
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
  std::string shapes = directory / "shapes of today.txt";

  Bench() { write_file(shapes, "128 f32\n77 bf16->f32 32 log_softmax\n"); }

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

TEST_CASE("verify counts what is in order, names what is not, and changes nothing") {
  const Bench bench;
  Bench::put(bench.layer, 1);
  const std::string path = Bench::put(bench.cache, 2);
  const Outcome good = bench.run({"verify"});
  CHECK(good.code == 0);
  CHECK(good.out ==
        "2 entries: 2 valid, 0 of another version, 0 damaged, 0 refused, 0 unreadable; nothing was changed\n");

  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const auto check_bad = [&](const char* condition, const std::string& reason) {
    const Outcome bad = bench.run({"verify"});
    CHECK(bad.code == 1);
    CHECK(mentions(bad.out, condition + (": " + path) + ": it " + reason));
    const json counts = bench.run_json({"verify"}, 1);
    CHECK(counts.at("valid") == 1);
    CHECK(counts.at(condition) == 1);
    REQUIRE(counts.at("faults").size() == 1);
    CHECK(counts.at("faults")[0].at("path") == path);
    CHECK(counts.at("faults")[0].at("condition") == condition);
  };
  SUBCASE("a flipped bit") {
    write_file(path, bytes);
    check_bad("damaged", "has a wrong checksum");
    CHECK(read_file(path) == bytes);
  }
  SUBCASE("a truncated entry") {
    fs::resize_file(path, bytes.size() - 1);
    check_bad("damaged", "has a wrong checksum");
    CHECK(fs::file_size(path) == bytes.size() - 1);
  }
  SUBCASE("something foreign under an entry's name") {
    write_file(path, std::string(100, 'x'));
    check_bad("damaged", "is no cache entry");
  }
  SUBCASE("a symbolic link") {
    fs::rename(path, bench.directory / "target");
    fs::create_symlink(bench.directory / "target", path);
    check_bad("refused", "is a symbolic link");
    CHECK(fs::is_symlink(path));
  }
  SUBCASE("an entry that others may write to") {
    fs::permissions(path, fs::perms{0666});
    check_bad("refused", "is writable by everybody");
  }
  SUBCASE("a directory that nobody looks into") {
    fs::permissions(bench.cache, fs::perms{0777});
    const Outcome bad = bench.run({"verify"});
    CHECK(bad.code == 1);
    CHECK(mentions(bad.out, "not looked into: " + bench.cache + ": it is writable by everybody"));
  }
}

TEST_CASE("verify with shapes lists what is missing, and the command that adds it") {
  const Bench bench;
  std::vector<WarmupWork> needed;
  for (const auto& [cols, in, op] : {std::tuple{128, DType::f32, Op::softmax}, {77, DType::bf16, Op::log_softmax}}) {
    const Problem problem{.cols = cols, .in = in, .out = DType::f32, .op = op};
    for (WarmupWork& work : list_work({}, {problem}, {Arch{8, 0}, Arch{9, 0}})) needed.push_back(std::move(work));
  }
  const std::vector<std::string> command{"verify", "--shapes", bench.shapes, "--arch", "sm_80,sm_90"};
  const json nothing = bench.run_json(command, 1);
  CHECK(nothing.at("specializations") == needed.size());
  CHECK(nothing.at("missing").size() == needed.size());

  // All but one, spread over layer and directory.
  const auto put = [&](const WarmupWork& work, const std::string& where) {
    const jit::Program program = jit::program(work.specialization, work.item.arch);
    REQUIRE(cache::Store({.directory = where}).put(fixtures::key_of(program), program, sample_cubin()));
    return cache::entry_path(where, fixtures::key_of(program));
  };
  for (std::size_t i = 1; i < needed.size(); ++i) put(needed[i], i % 2 == 0 ? bench.layer : bench.cache);
  const std::string line =
      "missing: " + needed[0].item.specialization + " for sm_80\n1 of " + std::to_string(needed.size()) +
      " specializations missing; add them with: jitsoftmax warmup --shapes '" + bench.shapes + "' --arch sm_80,sm_90\n";
  const Outcome one = bench.run(command);
  CHECK(one.code == 1);
  CHECK(one.out == line);

  const std::string last = put(needed[0], bench.cache);
  const Outcome all = bench.run(command);
  CHECK(all.code == 0);
  CHECK(mentions(all.out, "all " + std::to_string(needed.size()) + " are in "));
  fs::resize_file(last, 100);  // there, but no load would take it
  CHECK(bench.run(command).code == 1);
  CHECK(fs::file_size(last) == 100);
}

TEST_CASE("prune removes entries of the writable directory only") {
  const Bench bench;
  const std::string in_layer = Bench::put(bench.layer, 1);
  const std::string old_one = Bench::put(bench.cache, 2);
  const std::string young = Bench::put(bench.cache, 3);
  fs::last_write_time(old_one, fs::file_time_type::clock::now() - std::chrono::hours(49));
  const auto size = fs::file_size(young);

  CHECK(bench.run_json({"prune", "--older-than", "3"}).at("removed").empty());
  const json planned = bench.run_json({"prune", "--older-than", "2", "--dry-run"});
  REQUIRE(planned.at("removed").size() == 1);
  CHECK(planned.at("removed")[0].at("path") == old_one);
  CHECK(planned.at("kept") == 1);
  CHECK(mentions(bench.run({"prune", "--older-than", "2", "--dry-run"}).out, "dry run: 1 entry ("));
  CHECK(fs::exists(old_one));

  const Outcome limited = bench.run({"prune", "--limit", std::to_string(size)});
  CHECK(limited.code == 0);
  CHECK(limited.out == "1 entry (" + std::to_string(size) + " bytes) and 0 abandoned temporaries removed; 1 entry (" +
                           std::to_string(size) + " bytes) left in " + bench.cache + "\n");
  CHECK_FALSE(fs::exists(old_one));
  CHECK(fs::exists(young));
  CHECK(bench.run({"prune", "--all"}).code == 0);
  CHECK_FALSE(fs::exists(young));
  CHECK(fs::exists(in_layer));
}

TEST_CASE("prune without a directory that may be written ends with 4 and removes nothing") {
  const Bench bench;
  const std::string path = Bench::put(bench.cache, 1);
  const Outcome none = bench.run({"prune", "--all", "--cache-dir", ""});
  CHECK(none.code == 4);
  CHECK(mentions(none.err, "no writable cache directory"));
  fs::permissions(bench.cache, fs::perms{0777});
  const Outcome refused = bench.run({"prune", "--all"});
  CHECK(refused.code == 4);
  CHECK(mentions(refused.err, "writable by everybody"));
  CHECK(fs::exists(path));
}

TEST_CASE("a shard that prune does not look into is named, and ends it with 1") {
  const Bench bench;
  const std::string path = Bench::put(bench.cache, 1);
  fs::permissions(fs::path(path).parent_path(), fs::perms{0777});
  const Outcome outcome = bench.run({"prune", "--all"});
  CHECK(outcome.code == 1);
  CHECK(mentions(outcome.err, "writable by everybody"));
  CHECK(fs::exists(path));
}

TEST_CASE("a directory that is not there is empty and stays so") {
  const Bench bench;
  for (const char* command : {"list", "verify"}) {
    const Outcome outcome = bench.run({command});
    CHECK(outcome.code == 0);
    CHECK(mentions(outcome.out, "0 entries"));
  }
  CHECK(bench.run({"prune", "--all"}).code == 0);
  CHECK_FALSE(fs::exists(bench.cache));
}

TEST_CASE("a limit in the environment that is no size ends with 2") {
  const Bench bench;
  CHECK(bench.run({"list"}, {{"JITSOFTMAX_CACHE_LIMIT", "much"}}).code == 2);
  CHECK(mentions(bench.run({"list"}, {{"JITSOFTMAX_CACHE_LIMIT", "-1"}}).err, "JITSOFTMAX_CACHE_LIMIT is '-1'"));
  for (const char* limit : {"none", "0", "64MB"})
    CHECK(bench.run({"list"}, {{"JITSOFTMAX_CACHE_LIMIT", limit}}).code == 0);
}

TEST_CASE("a command line that makes no sense ends with 2") {
  const Bench bench;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"burn"},
                                             {"list", "--fast"},
                                             {"path", "extra"},
                                             {"prune"},
                                             {"prune", "--dry-run"},
                                             {"prune", "--all", "--limit", "5"},
                                             {"prune", "--limit", "some"},
                                             {"prune", "--limit", "-1"},
                                             {"prune", "--older-than", "-1"},
                                             {"verify", "--shapes", bench.shapes},
                                             {"verify", "--arch", "sm_90"},
                                             {"verify", "--shapes", bench.directory / "missing", "--arch", "sm_90"},
                                             {"verify", "--shapes", bench.shapes, "--arch", "volta"}}) {
    const Outcome outcome = bench.run(arguments);
    CAPTURE(arguments.empty() ? "nothing" : arguments.back());
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("jitsoftmax: error: "));
  }
}
