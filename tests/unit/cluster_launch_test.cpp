// Promise: the blocks of clusters are scheduled by load where all of them have room on the device at the same time,
// with those of the launch before if it may still be running, and only there; launches without clusters say nothing of
// it. The tiles with which a launch begins read one after another where that is of use, and only those.
#include <doctest/doctest.h>

#include <vector>

#include "stand_in/engine_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

stand_in::Launch only_launch() {
  const std::vector<stand_in::Launch> launches = stand_in::take_launches();
  REQUIRE(launches.size() == 1);
  return launches.front();
}

}  // namespace

TEST_CASE("few rows in clusters are scheduled by load, more of them as the driver likes") {
  const CurrentDevice device;
  Engine engine(stand_in_options());
  for (const Problem& problem : {Problem{.cols = 65536}, Problem{.cols = 4096, .layout = Layout::strided}}) {
    for (const std::int64_t count : {1, 2, 100000}) {
      CAPTURE(count);
      (void)stand_in::take_launches();
      engine.softmax(problem, some_rows(count));
      const stand_in::Launch launch = only_launch();
      CHECK(launch.cluster > 1);
      CHECK(launch.balanced == (count < 100000));
    }
  }
}

TEST_CASE("where the launch before may still be running there has to be room for both") {
  const CurrentDevice device;
  for (const bool programmatic : {false, true}) {
    Options options = stand_in_options();
    options.programmatic_launch = programmatic;
    Engine engine(options);
    for (const std::int64_t count : {1, 12}) {  // 192 blocks, where a device holds 264 at once
      CAPTURE(programmatic);
      CAPTURE(count);
      (void)stand_in::take_launches();
      engine.softmax({.cols = 65536}, some_rows(count));
      const stand_in::Launch launch = only_launch();
      CHECK(launch.grid_x == 16 * count);
      CHECK(launch.balanced == (count == 1 || !programmatic));
    }
  }
}

TEST_CASE("a launch without clusters has no such attribute, whatever its size") {
  const CurrentDevice device;
  Engine engine(stand_in_options());
  for (const std::int64_t count : {1, 100000}) {
    (void)stand_in::take_launches();
    engine.softmax({.cols = 1000}, some_rows(count));
    const stand_in::Launch launch = only_launch();
    CHECK(launch.plain);
    CHECK_FALSE(launch.balanced);
  }
}

TEST_CASE("the long rows with which a launch begins are read one after another if there are many of them") {
  const CurrentDevice device;
  Engine engine(stand_in_options());
  const auto staggered = [&](const Problem& problem, std::int64_t count) {
    (void)stand_in::take_launches();
    engine.softmax(problem, some_rows(count));
    return only_launch().arguments.staggered;
  };
  constexpr int at_once = stand_in::active_blocks_in_clusters / 16;
  const Problem long_rows{.cols = 131072};
  CHECK(staggered(long_rows, 15) == 0);
  CHECK(staggered(long_rows, 16) == at_once);
  CHECK(staggered(long_rows, 32) == at_once);
  CHECK(staggered(long_rows, 33) == at_once);
  CHECK(staggered(long_rows, 100000) == at_once);
  const Problem strided{.cols = 4096, .layout = Layout::strided};
  CHECK(staggered(strided, 15 * 32) == 0);
  CHECK(staggered(strided, 16 * 32) == at_once);
  CHECK(staggered({.cols = 32000}, 24) == 0);  // 3 MB is less than 25 rows
  CHECK(staggered({.cols = 32000}, 25) == at_once);
  CHECK(staggered({.cols = 8192}, 100000) == 0);  // of short rows, or without clusters, none waits
  CHECK(staggered({.cols = 1024}, 100000) == 0);
}

TEST_CASE("where the driver cannot say how many clusters it has room for, rows are read as they come") {
  const CurrentDevice device;
  stand_in::know_clusters(false);
  Engine engine(stand_in_options());
  (void)stand_in::take_launches();
  engine.softmax({.cols = 131072}, some_rows(100));
  stand_in::know_clusters(true);
  const stand_in::Launch launch = only_launch();
  CHECK(launch.cluster == 16);
  CHECK(launch.arguments.staggered == 0);
}
