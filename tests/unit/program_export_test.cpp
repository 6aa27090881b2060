// Promise: what `cache export` writes, `cache import` adds elsewhere, and nothing else: a file that is not
// whole, or was made by hand, adds nothing.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/warmup.hpp"
#include "cache/pack.hpp"
#include "cache/store.hpp"
#include "cache_fixtures.hpp"
#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/tuned.hpp"
#include "program.hpp"
#include "tune/records.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Outcome;
using jitsoftmax::testing::read_file;
using jitsoftmax::testing::write_file;
using nlohmann::json;
namespace fs = std::filesystem;

const std::string templates = cache::digest_of(jit::templates()).hex();
constexpr Arch sm_80{8, 0};
constexpr Arch sm_90{9, 0};

struct Bench {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string cache = directory / "cache";
  std::string target = directory / "target";
  std::string file = directory / "kernels.pack";
  std::string shapes = directory / "shapes.txt";

  Bench() { write_file(shapes, "1024..2048*2 f32\n"); }

  Outcome run(std::vector<std::string> arguments, std::map<std::string, std::string> environment = {}) const {
    arguments.insert(arguments.begin(), "cache");
    return jitsoftmax::testing::Program(directory, arguments, environment).wait();
  }
  // The standard output of one that succeeds.
  json run_json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const Outcome outcome = run(arguments);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
  }
  void put(const plan::Specialization& specialization, const Arch& arch) const {
    const jit::Program program = jit::program(specialization, arch);
    REQUIRE(cache::Store({.directory = cache}).put(fixtures::key_of(program), program, sample_cubin()));
  }
  // The kernels of some lengths; returns how many.
  std::size_t warm(const std::vector<std::int64_t>& lengths, const Arch& arch) const {
    std::size_t count = 0;
    for (const std::int64_t cols : lengths) {
      for (const WarmupWork& work : list_work({}, {Problem{.cols = cols}}, {arch})) {
        put(work.specialization, arch);
        ++count;
      }
    }
    return count;
  }
  // A record of many rows whose winner is another kernel than the built-in choice; returns that kernel.
  plan::Specialization tune(std::int64_t cols, const std::string& where) const {
    const Problem problem{.cols = cols};
    const std::string built_in = plan::name_expression(plan::unaligned(plan::choose(problem, sm_90).back()));
    const std::vector<plan::Specialization> candidates = plan::candidates(problem, sm_90);
    const auto winner = std::ranges::find_if(candidates, [&](const plan::Specialization& s) {
      return plan::name_expression(s) != built_in && s.config.cluster == 1;
    });
    REQUIRE(winner != candidates.end());
    const std::string name = plan::name_expression(*winner);
    tune::Records records({.directory = where, .templates = templates});
    REQUIRE(records.add({.problem = problem, .device = "NVIDIA H200", .driver_major = 13},
                        {.rows = 4096,
                         .entries = {{.specialization = name,
                                      .seconds = {.median = 1e-5, .p10 = 1e-5, .p90 = 1e-5, .rounds = 11},
                                      .finalist = true}}}));
    return *winner;
  }
};

// Relative names of the files below, and their bytes.
std::map<std::string, std::string> contents(const std::string& directory) {
  std::map<std::string, std::string> all;
  for (const std::string& path : files_below(directory))
    if (fs::path(path).filename() != ".lock") all[fs::relative(path, directory)] = read_file(path);
  return all;
}

}  // namespace

TEST_CASE("everything is exported, imported elsewhere, and exported again to the same bytes") {
  const Bench bench;
  const std::size_t kernels = bench.warm({1024, 77}, sm_90) + bench.warm({1024}, sm_80);
  (void)bench.tune(1024, bench.cache);
  const json exported = bench.run_json({"export", bench.file});
  CHECK(exported.at("kernels") == kernels);
  CHECK(exported.at("records") == 1);
  CHECK(exported.at("architectures") == json{"sm_80", "sm_90"});
  CHECK(exported.at("bytes") == fs::file_size(bench.file));

  const json imported = bench.run_json({"import", bench.file, "--cache-dir", bench.target});
  CHECK(imported.at("added") == kernels);
  CHECK(imported.at("already_there") == 0);
  CHECK(contents(bench.target) == contents(bench.cache));
  CHECK(bench.run_json({"import", bench.file, "--cache-dir", bench.target}).at("already_there") == kernels);
  CHECK(contents(bench.target) == contents(bench.cache));

  const std::string again = bench.directory / "again.pack";
  CHECK(bench.run({"export", again, "--cache-dir", bench.target}).code == 0);
  CHECK(read_file(again) == read_file(bench.file));
  CHECK(bench.run_json({"export", again, "--arch", "sm_80"}).at("architectures") == json{"sm_80"});
}

TEST_CASE("shapes take what they need along: the built-in kernels, their records, and what these picked") {
  const Bench bench;
  const std::size_t needed = bench.warm({1024, 2048}, sm_90);
  bench.warm({77}, sm_90);
  bench.warm({1024, 2048}, sm_80);
  (void)bench.tune(77, bench.cache);
  const plan::Specialization winner = bench.tune(1024, bench.cache);
  const std::vector<std::string> command{"export", bench.file, "--shapes", bench.shapes, "--arch", "sm_90"};
  const json without = bench.run_json(command);
  CHECK(without.at("kernels") == needed);
  CHECK(without.at("records") == 1);
  CHECK(without.at("records_without_kernels") == 1);

  const plan::Bundle picked = plan::bundle_of(winner, false);
  for (const plan::Specialization& member : picked) bench.put(member, sm_90);
  const json with = bench.run_json(command);
  CHECK(with.at("kernels") == needed + picked.size());
  CHECK(with.at("records_without_kernels") == 0);
  CHECK(with.at("architectures") == json{"sm_90"});
}

TEST_CASE("shapes that are not all there are no export: what is missing is named with the command for it") {
  const Bench bench;
  bench.warm({1024}, sm_90);
  const Outcome outcome = bench.run({"export", bench.file, "--shapes", bench.shapes, "--arch", "sm_90"});
  CHECK(outcome.code == 1);
  CHECK(mentions(outcome.err, "missing: "));
  CHECK(mentions(outcome.err, "Static<2048>"));
  CHECK_FALSE(mentions(outcome.err, "Static<1024>"));
  CHECK(mentions(outcome.err, "add with: jitsoftmax warmup --shapes " + bench.shapes + " --arch sm_90"));
  CHECK_FALSE(fs::exists(bench.file));
  CHECK(bench.run({"export", bench.file, "--cache-dir", bench.target}).code == 1);  // nothing at all
  CHECK_FALSE(fs::exists(bench.file));
}

TEST_CASE("damaged entries stay behind and are named; the file has the others") {
  const Bench bench;
  const std::size_t kernels = bench.warm({1024}, sm_90);
  const std::string damaged = files_below(bench.cache).front();
  fs::resize_file(damaged, 100);
  const Outcome outcome = bench.run({"export", bench.file});
  CHECK(outcome.code == 1);
  CHECK(mentions(outcome.err, "not exported: " + damaged + ": it has a wrong checksum"));
  CHECK(bench.run_json({"import", bench.file, "--cache-dir", bench.target}).at("kernels") == kernels - 1);
}

TEST_CASE("an import merges its records with those that are there") {
  const Bench bench;
  (void)bench.tune(1024, bench.cache);
  CHECK(bench.run({"export", bench.file}).code == 0);
  const tune::RecordKey key{.problem = {.cols = 1024}, .device = "NVIDIA H200", .driver_major = 13};
  tune::Records own({.directory = bench.target, .templates = templates});
  REQUIRE(own.add(key, {.rows = 4096, .entries = {{.specialization = "mine", .rejected = "spills registers"}}}));
  CHECK(bench.run_json({"import", bench.file, "--cache-dir", bench.target}).at("records") == 1);
  const auto merged = own.find(key);
  REQUIRE(merged);
  CHECK(merged->entries.size() == 2);
  CHECK(merged->find("mine") != nullptr);
}

TEST_CASE("a file that is not whole adds nothing, and ends with 2") {
  const Bench bench;
  bench.warm({1024}, sm_90);
  (void)bench.tune(1024, bench.cache);
  REQUIRE(bench.run({"export", bench.file}).code == 0);
  const std::string whole = read_file(bench.file);
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    write_file(bench.file, bytes);
    const Outcome outcome = bench.run({"import", bench.file, "--cache-dir", bench.target});
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(mentions(outcome.err, "nothing was imported: '" + bench.file + "' " + why));
    CHECK_FALSE(fs::exists(bench.target));
  };
  refused("", "is empty");
  refused(whole.substr(0, whole.size() - 1), "has a wrong checksum");
  refused(whole.substr(0, 20), "is truncated");
  refused(std::string(1000, 'x'), "is no exported cache");
  std::string flipped = whole;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
  refused(flipped, "has a wrong checksum");

  // Good entries before a record that makes no sense.
  const jit::Program program = sample_program();
  const cache::Key key = fixtures::key_of(program);
  const auto packed = [&](const std::set<std::string>& records) {
    const std::vector<char> bytes =
        cache::serialize_pack({{key, cache::serialize(key, program, sample_cubin())}}, records);
    return std::string(bytes.begin(), bytes.end());
  };
  refused(packed({"../../../etc/passwd"}), "has a tuning record that is damaged: it cannot be read");
  refused(packed({"{}"}), "has a tuning record that is damaged");
  const tune::RecordKey record_key{.problem = {.cols = 5}, .device = "GPU", .driver_major = 13};
  const tune::Record empty{.rows = 1, .entries = {}};
  refused(packed({tune::to_text(record_key, "other kernels", empty)}), "has a tuning record that was made with other");
  const tune::Record other{.rows = 2, .entries = {}};
  refused(packed({tune::to_text(record_key, templates, empty), tune::to_text(record_key, templates, other)}),
          "has two tuning records of 5 f32");
  refused(packed({tune::to_text({.problem = {.cols = -5}, .device = "GPU"}, templates, empty)}),
          "has a tuning record that is damaged");
}

TEST_CASE("names come from keys: whatever a record says of its device stays below the directory") {
  const Bench bench;
  const tune::RecordKey key{.problem = {.cols = 5}, .device = "../../../../escaped", .driver_major = 13};
  const std::vector<char> bytes =
      cache::serialize_pack({}, {tune::to_text(key, templates, {.rows = 1, .entries = {}})});
  write_file(bench.file, {bytes.data(), bytes.size()});
  const std::size_t before = bench.directory.file_count();
  CHECK(bench.run({"import", bench.file, "--cache-dir", bench.target}).code == 0);
  CHECK(fs::exists(tune::record_path(bench.target, key)));
  CHECK(files_below(bench.target).size() == 2);       // the record, and the lock
  CHECK(bench.directory.file_count() == before + 4);  // and what the program said
}

TEST_CASE("where nothing can be written, or read, the exit code says which") {
  const Bench bench;
  bench.warm({1024}, sm_90);
  REQUIRE(bench.run({"export", bench.file}).code == 0);
  CHECK(bench.run({"import", bench.file, "--cache-dir", ""}).code == 4);
  write_file(bench.target, "a file where the directory should be");
  CHECK(bench.run({"import", bench.file, "--cache-dir", bench.target}).code == 4);
  const Outcome limited =
      bench.run({"import", bench.file, "--cache-dir", bench.directory / "other"}, {{"JITSOFTMAX_CACHE_LIMIT", "100"}});
  CHECK(limited.code == 4);
  CHECK(mentions(limited.err, "JITSOFTMAX_CACHE_LIMIT allows 100"));
  CHECK_FALSE(fs::exists(bench.directory / "other"));

  CHECK(bench.run({"import", bench.directory / "missing"}).code == 2);
  CHECK(bench.run({"import", bench.directory.path()}).code == 2);
  const std::string pipe = bench.directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const Outcome piped = bench.run({"import", pipe});
  CHECK(piped.code == 2);
  CHECK(mentions(piped.err, "is no regular file"));
  CHECK(bench.run({"export", bench.directory / "none/file"}).code == 1);
  CHECK(bench.run({"export", bench.directory.path()}).code == 2);
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"export"}, {"import"}, {"export", bench.file, "--shapes", bench.shapes}, {"import", bench.file, "more"}})
    CHECK(bench.run(arguments).code == 2);
}
