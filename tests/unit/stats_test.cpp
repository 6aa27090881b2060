// Promise: what an operator wants to know of an engine is in its Stats, with reasons.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "stand_in/engine_case.hpp"
#include "temporary_directory.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

// Every entry in the directory, cut short.
int damage_entries(const TemporaryDirectory& directory) {
  int damaged = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory.path())) {
    if (file.path().extension() != ".jsc") continue;
    std::filesystem::resize_file(file.path(), file.file_size() - 1);
    ++damaged;
  }
  return damaged;
}

}  // namespace

TEST_CASE("compiles, hits on disk, their times, and entries that were rejected with the reason") {
  const CurrentDevice device;
  const TemporaryDirectory directory;
  Options options = stand_in_options();
  options.cache_dir = directory.path();
  stand_in::compile_takes(std::chrono::milliseconds(2));
  {
    Engine engine(options);
    (void)engine.prepare({.cols = 901});
    const Stats stats = engine.stats();
    CHECK(stats.kernels == 1);
    CHECK(stats.compiles == 1);
    CHECK(stats.disk_hits == 0);
    CHECK(stats.compile_seconds >= 0.002);
    CHECK(stats.cache_faults.empty());
  }
  {
    Engine engine(options);
    for (int i = 0; i < 3; ++i) engine.softmax({.cols = 901}, some_rows());
    const Stats stats = engine.stats();
    CHECK(stats.disk_hits == 1);
    CHECK(stats.compiles == 0);
    CHECK(stats.compile_seconds == 0);
    CHECK(stats.load_seconds > 0);
    CHECK(stats.load_seconds < 1);
  }
  REQUIRE(damage_entries(directory) == 1);
  Engine engine(options);
  (void)engine.prepare({.cols = 901});
  const Stats stats = engine.stats();
  CHECK(stats.rejected_entries == 1);
  CHECK(stats.compiles == 1);
  REQUIRE(stats.cache_faults.size() == 1);
  CAPTURE(stats.cache_faults[0]);
  CHECK(has(stats.cache_faults[0], ".jsc"));
  stand_in::compile_takes(std::chrono::milliseconds(0));
}

TEST_CASE("compiles that fail are counted") {
  const CurrentDevice device;
  Engine engine(stand_in_options());
  stand_in::refuse("Static<903>");
  CHECK(code_of([&] { (void)engine.prepare({.cols = 903}); }) == ErrorCode::compile_failed);
  stand_in::refuse("");
  CHECK(engine.stats().compile_failures == 1);
  CHECK(engine.stats().kernels == 0);
}
