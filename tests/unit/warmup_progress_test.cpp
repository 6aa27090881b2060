// Promise: a warmup says how far it is and how long it may take, and claims to know no more than it does.
#include "tools/warmup_progress.hpp"

#include <doctest/doctest.h>

using namespace jitsoftmax::tools;

TEST_CASE("what is left takes as long as what was compiled did") {
  CHECK_FALSE(seconds_left({.done = 5, .total = 10, .compiled = 0, .seconds = 3}));
  CHECK(*seconds_left({.done = 5, .total = 10, .compiled = 5, .seconds = 3}) == doctest::Approx(3));
  // What was found in the cache took no time, and says nothing of the rest.
  CHECK(*seconds_left({.done = 6, .total = 10, .compiled = 2, .seconds = 3}) == doctest::Approx(6));
  CHECK(*seconds_left({.done = 10, .total = 10, .compiled = 10, .seconds = 3}) == 0);
}

TEST_CASE("the line and the bar say the same") {
  CHECK(to_line({.done = 0, .total = 200}) == "0 of 200");
  CHECK(to_line({.done = 50, .total = 200, .compiled = 50, .seconds = 10}) == "50 of 200, about 30 s left");
  CHECK(to_line({.done = 200, .total = 200, .compiled = 50, .seconds = 10}) == "200 of 200");
  CHECK(to_bar({.done = 50, .total = 200, .compiled = 50, .seconds = 10}) ==
        "[#####...............] 50 of 200, about 30 s left");
  CHECK(to_bar({.done = 0, .total = 0}) == "[....................] 0 of 0");
  CHECK(to_bar({.done = 3, .total = 3}) == "[####################] 3 of 3");
}

TEST_CASE("a time is said in the unit that people would take") {
  CHECK(duration(0.2) == "0 s");
  CHECK(duration(90) == "90 s");
  CHECK(duration(300) == "5 min");
  CHECK(duration(9000) == "2.5 h");
}
