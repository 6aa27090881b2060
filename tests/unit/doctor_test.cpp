// Promise: `jitsoftmax doctor` says what there is, where and what to do about the rest, whatever is
// missing, changes nothing, and ends with 0 only where kernels can be compiled or launched.
#include <doctest/doctest.h>
#include <jitsoftmax/version.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "cache/key.hpp"
#include "cache/store.hpp"
#include "jit/source.hpp"
#include "program.hpp"
#include "tools/diagnosis_report.hpp"
#include "tune/records.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;
using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Outcome;
using jitsoftmax::testing::write_file;

struct Clinic {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string cache = directory / "cache";

  // On a machine without NVRTC and without a GPU, wherever this runs.
  Outcome run(std::vector<std::string> arguments = {}, std::map<std::string, std::string> environment = {}) const {
    arguments.insert(arguments.begin(), "doctor");
    environment.try_emplace("JITSOFTMAX_NVRTC", directory / "no-libnvrtc.so");
    return jitsoftmax::testing::Program(directory, arguments, environment).wait();
  }
};

void make_directory(const std::string& path, mode_t mode) {
  std::filesystem::create_directories(path);
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

std::string last_line(const std::string& page) {
  const std::size_t end = page.find_last_not_of('\n');
  return page.substr(page.rfind('\n', end) + 1, end - page.rfind('\n', end));
}

// As a machine with everything has it.
Diagnosis healthy() {
  Diagnosis found;
  found.driver = {.library = "/lib/libcuda.so.1",
                  .cuda_version = 12040,
                  .version = "550.54.14",
                  .gpus = {{0, "NVIDIA H200", {9, 0}, 132}, {1, "NVIDIA A100", {8, 0}, 108}}};
  found.nvrtc = {.library = "/lib/libnvrtc.so.12", .version = "12.4", .trial_arch = {9, 0}, .trial_seconds = 0.0125};
  found.cache = {{.path = "/cache", .access = Access::writable, .exists = true, .entries = 3, .bytes = 4500}};
  found.cpu = "AVX2";
  return found;
}

}  // namespace

TEST_CASE("without a driver it says why, with the advice, and that nothing can be launched") {
  const Clinic clinic;
  const Outcome outcome = clinic.run();
  CHECK(mentions(outcome.out, "\nmissing  driver: a GPU is needed, but "));
  CHECK(mentions(outcome.out, "libcuda.so"));
  CHECK(mentions(outcome.out, "Install NVIDIA's driver"));
  CHECK(mentions(last_line(outcome.out), "cannot launch"));
  CHECK(outcome.err.empty());
}

TEST_CASE("an NVRTC that is not where it is said to be is named, and the exit code is that of no compiler") {
  const Clinic clinic;
  const Outcome outcome = clinic.run({}, {{"JITSOFTMAX_NVRTC", "/nonexistent/nvrtc"}});
  CHECK(outcome.code == 3);
  CHECK(mentions(outcome.out, "\nmissing  NVRTC: "));
  CHECK(mentions(outcome.out, "/nonexistent/nvrtc and from nowhere else"));
  CHECK(mentions(outcome.out, "cuda-nvrtc"));
  CHECK(last_line(outcome.out).rfind("missing  in all: cannot compile, cannot launch on a GPU, can cache", 0) == 0);
}

TEST_CASE("with an NVRTC in the usual places the exit code is 0, and only then") {
  const Clinic clinic;
  const Outcome outcome = clinic.run({}, {{"JITSOFTMAX_NVRTC", ""}});
  const bool works = mentions(outcome.out, "\nok       trial: an empty kernel for sm_");
  CHECK(outcome.code == (works ? 0 : 3));
  CHECK(mentions(last_line(outcome.out), works ? "in all: can compile" : "in all: cannot compile"));
  CHECK(mentions(outcome.out, works ? "\nok       NVRTC: /" : "\nmissing  "));
}

TEST_CASE("each line begins with a word for its health, or continues the line before") {
  const Clinic clinic;
  make_directory(clinic.cache, 0777);
  std::istringstream page(clinic.run().out);
  int lines = 0;
  for (std::string line; std::getline(page, line); ++lines) {
    CAPTURE(line);
    const std::string start = line.substr(0, 9);
    CHECK(std::ranges::count(std::vector<std::string>{"ok       ", "warn     ", "missing  ", "         "}, start) == 1);
  }
  CHECK(lines > 8);
}

TEST_CASE("a cache directory that is refused is named with the reason") {
  const Clinic clinic;
  make_directory(clinic.cache, 0777);
  const std::string layer = clinic.directory / "layer";
  std::filesystem::create_directory_symlink(clinic.cache, layer);
  const Outcome outcome = clinic.run({}, {{"JITSOFTMAX_CACHE_LAYERS", layer + ":" + (clinic.directory / "none")}});
  CHECK(mentions(outcome.out, "\nwarn     cache, writable directory " + clinic.cache +
                                  ": refused: it is writable by everybody (chmod go-w)"));
  CHECK(mentions(outcome.out, "\nwarn     cache, read-only layer " + layer + ": refused: it is a symbolic link"));
  CHECK(mentions(outcome.out, "\nwarn     cache, read-only layer " + (clinic.directory / "none") + ": does not exist"));
  CHECK(mentions(last_line(outcome.out), "cannot cache"));
}

TEST_CASE("a cache directory below a file cannot be created; none at all is told apart") {
  const Clinic clinic;
  write_file(clinic.directory / "file", "");
  const std::string below = clinic.directory / "file/cache";
  const Outcome outcome = clinic.run({"--cache-dir", below});
  CHECK(mentions(outcome.out, "\nwarn     cache, writable directory " + below + ": "));
  CHECK(mentions(last_line(outcome.out), "cannot cache"));
  const Outcome none = clinic.run({"--cache-dir", ""});
  CHECK(mentions(none.out, "\nwarn     cache: no writable directory"));
  CHECK(mentions(last_line(none.out), "cannot cache"));
}

TEST_CASE("entries are counted, those that others could have written are refused, and nothing changes") {
  const Clinic clinic;
  CHECK(mentions(clinic.run().out, clinic.cache + ": does not exist yet"));
  CHECK_FALSE(std::filesystem::exists(clinic.cache));

  make_directory(clinic.cache, 0700);
  const auto add = [&](const std::string& content) {
    std::string path = cache::entry_path(clinic.cache, cache::digest_of(std::span<const char>(content)));
    const std::string shard = std::filesystem::path(path).parent_path();
    make_directory(shard, 0700);
    write_file(path, content);
    write_file(shard + "/.tmp-1", "left over");
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    return path;
  };
  (void)add(std::string(1000, 'x'));
  const std::string second = add(std::string(500, 'x'));
  CHECK(mentions(
      clinic.run().out,
      clinic.cache +
          ": trusted, writable, 2 entries, 1.5 KB: it belongs to this user, and nobody else may write to it\n"));
  REQUIRE(::chmod(second.c_str(), 0666) == 0);
  const std::size_t files = clinic.directory.file_count();
  CHECK(mentions(clinic.run().out, "1 entry is refused, the first: " + second + " is writable by every"));
  CHECK(clinic.directory.file_count() == files);

  make_directory(clinic.cache + "/cd", 0777);
  const Outcome shard = clinic.run();
  CHECK(mentions(shard.out, "\nwarn     cache, writable directory " + clinic.cache + ": " + clinic.cache +
                                "/cd is not used: it is writable by everybody (chmod go-w)"));
  CHECK(mentions(
      shard.out,
      clinic.cache +
          ": trusted, writable, 2 entries, 1.5 KB: it belongs to this user, and nobody else may write to it\n"));
}

TEST_CASE("tuning records are counted by device, and one that is not used says why") {
  const Clinic clinic;
  CHECK(mentions(clinic.run().out, "tuning: no records in use"));
  const auto add = [&](int cols, const std::string& templates) {
    const tune::RecordKey key{.problem = {.cols = cols}, .device = "NVIDIA H200", .driver_major = 13};
    tune::Records records({.directory = clinic.cache, .templates = templates});
    REQUIRE(records.add(key, {.rows = 1, .entries = {{.specialization = "a", .rejected = "spills"}}}));
    return tune::record_path(clinic.cache, key);
  };
  const std::string own = cache::digest_of(jit::templates()).hex();
  (void)add(1, own);
  (void)add(2, own);
  const std::string stale = add(3, "other");
  const std::string damaged = add(4, own);
  write_file(damaged, "{");
  const std::string page = clinic.run().out;
  CHECK(mentions(page, "\nok       tuning: 2 records of NVIDIA H200 with a driver of CUDA 13\n"));
  CHECK(mentions(page, "\nwarn     tuning: " + stale + " is not used: it was made with other kernels"));
  CHECK(mentions(page, "\nwarn     tuning: " + damaged + " is not used: it is damaged"));
  REQUIRE(::chmod((clinic.cache + "/records").c_str(), 0777) == 0);
  CHECK(mentions(clinic.run().out, clinic.cache + "/records is not used: it is writable by everybody"));
}

TEST_CASE("settings that nobody understands are said, and do not stop it") {
  const Clinic clinic;
  const Outcome outcome = clinic.run({}, {{"JITSOFTMAX_DEVICE", "gpu"},
                                          {"JITSOFTMAX_ON_MISS", "wait"},
                                          {"JITSOFTMAX_LOG", "loud"},
                                          {"JITSOFTMAX_CACHE_LAYERS", "/nonexistent/layer"},
                                          {"JITSOFTMAX_CACHE_DIRECTORY", "/x"}});
  CHECK(mentions(outcome.out, "\nwarn     environment: JITSOFTMAX_DEVICE=gpu: 'gpu' is no device"));
  CHECK(
      mentions(outcome.out, "\nwarn     environment: JITSOFTMAX_ON_MISS=wait: JITSOFTMAX_ON_MISS is 'wait'; known: "));
  CHECK(mentions(outcome.out, "\nwarn     environment: JITSOFTMAX_LOG=loud: is no log level\n"));
  CHECK(mentions(outcome.out, "\nok       environment: JITSOFTMAX_CACHE_LAYERS=/nonexistent/layer\n"));
  CHECK(mentions(outcome.out, "read-only layer /nonexistent/layer: does not exist"));
  CHECK(mentions(outcome.out, "\nwarn     environment: JITSOFTMAX_CACHE_DIRECTORY=/x: nothing reads it"));
  CHECK(mentions(outcome.out, clinic.directory / "no-libnvrtc.so"));
}

TEST_CASE("a wrong setting is blamed for itself and for no other") {
  const Clinic clinic;
  const Outcome outcome = clinic.run({}, {{"JITSOFTMAX_CACHE_LIMIT", "64MB"},
                                          {"JITSOFTMAX_DEVICE", "gpu"},
                                          {"JITSOFTMAX_ON_MISS", "fail"},
                                          {"JITSOFTMAX_PROGRAMMATIC_LAUNCH", "true"},
                                          {"JITSOFTMAX_TRUSTED_OWNERS", "no-such-user"}});
  CHECK(mentions(outcome.out, "\nok       environment: JITSOFTMAX_CACHE_LIMIT=64MB\n"));
  CHECK(mentions(outcome.out, "\nwarn     environment: JITSOFTMAX_DEVICE=gpu: 'gpu' is no device"));
  CHECK(mentions(outcome.out, "\nok       environment: JITSOFTMAX_ON_MISS=fail\n"));
  CHECK(mentions(outcome.out, "\nok       environment: JITSOFTMAX_PROGRAMMATIC_LAUNCH=true\n"));
  CHECK(mentions(outcome.out, "there is no user 'no-such-user'; write names or ids"));
  CHECK(mentions(outcome.out, "in all: "));
}

TEST_CASE("trusted owners are shown") {
  const Clinic clinic;
  const std::map<std::string, std::string> environment{{"JITSOFTMAX_TRUSTED_OWNERS", "root,1001"}};
  CHECK(
      mentions(clinic.run({}, environment).out, "\nok       cache: trusted beside this user and root: user 0, 1001\n"));
  const nlohmann::json json = nlohmann::json::parse(clinic.run({"--json"}, environment).out);
  CHECK(json.at("trusted_owners") == nlohmann::json{0, 1001});
}

TEST_CASE("a named pipe where NVRTC should be is named, and nobody waits for it") {
  const Clinic clinic;
  const std::string pipe = clinic.directory / "libnvrtc.so";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, clinic.directory.path()}) {
    const Outcome outcome = clinic.run({}, {{"JITSOFTMAX_NVRTC", path}});
    CHECK(outcome.code == 3);
    CHECK(mentions(outcome.out, pipe + ": is no regular file"));
  }
}

TEST_CASE("JSON is one object with what the lines say") {
  const Clinic clinic;
  make_directory(clinic.cache, 0777);
  const Outcome outcome = clinic.run({"--json"}, {{"JITSOFTMAX_ON_MISS", "\xff"}});
  CHECK(outcome.code == 3);
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("version") == JITSOFTMAX_VERSION);
  CHECK(json.at("can_compile") == false);
  CHECK(json.at("can_launch") == false);
  CHECK(json.at("can_cache") == false);
  CHECK(json.at("driver").at("found") == false);
  CHECK(json.at("driver").at("gpus").empty());
  CHECK(mentions(json.at("nvrtc").at("error").get<std::string>(), "no-libnvrtc.so"));
  CHECK(json.at("cache").at(0).at("trusted") == false);
  CHECK(mentions(json.at("cache").at(0).at("reason").get<std::string>(), "writable by everybody"));
  CHECK(json.at("environment").contains("JITSOFTMAX_NVRTC"));
  CHECK(json.at("findings").size() > 5);
}

TEST_CASE("a machine with everything is told what it has") {
  Diagnosis found = healthy();
  const std::string page = to_text(found);
  CHECK(mentions(page, "\nok       driver: /lib/libcuda.so.1, of CUDA 12.4, driver 550.54.14\n"));
  CHECK(mentions(page, "\nok       GPU 0: NVIDIA H200, sm_90, 132 multiprocessors\n"));
  CHECK(mentions(page, "\nok       GPU 1: NVIDIA A100, sm_80, 108 multiprocessors\n"));
  CHECK(mentions(page, "\nok       trial: an empty kernel for sm_90 compiled in 12.5 ms\n"));
  CHECK(last_line(page) == "ok       in all: can compile, can launch on a GPU, can cache");
  CHECK(exit_code_of(found) == 0);

  found.nvrtc.version = "13.0";
  CHECK(mentions(to_text(found), "\nwarn     NVRTC 13.0 is newer than the driver of CUDA 12.4"));
  found.nvrtc = {.missing = "nowhere"};  // a warmed cache can still be launched from
  CHECK(exit_code_of(found) == 0);
  CHECK(mentions(last_line(to_text(found)), "warn     in all: cannot compile, can launch"));
  found.driver.gpus.clear();
  CHECK(exit_code_of(found) == 3);
}
