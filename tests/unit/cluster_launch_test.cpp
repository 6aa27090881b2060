// Promise: the blocks of clusters are scheduled by load where all of them have room on the device at the same time, and
// only there; launches without clusters say nothing of it.
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
