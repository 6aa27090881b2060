// Promise: a candidate that fails to compile, to launch or to be right is reported and skipped, and stops
// nobody; all of them are an error. Nothing that is known is timed.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tune/tuner.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::tune;

namespace {

// Kernels with known times and faults. Counts what is done to them.
struct Fake : Workshop {
  explicit Fake(std::vector<double> times) : seconds(std::move(times)), timed(seconds.size()), built(seconds.size()) {}

  std::vector<double> seconds;
  std::set<std::size_t> spills;
  std::set<std::size_t> uncompilable;
  std::set<std::size_t> unlaunchable;
  std::set<std::size_t> wrong;
  std::set<std::size_t> slow_to_build;
  bool no_compiler = false;
  std::vector<int> timed;
  std::vector<std::atomic<int>> built;
  std::set<std::size_t> checked;
  std::set<std::size_t> whole_uncompilable;
  std::set<std::size_t> whole_wrong;
  std::set<std::size_t> completed;
  std::atomic<int> building{0};
  std::atomic<int> most_building{0};
  std::thread::id tuning = std::this_thread::get_id();
  std::vector<std::size_t> first_timed;  // together
  bool overlapped = false;               // something was timed while something was built

  std::string build(std::size_t candidate, Part part) override {
    if (part == Part::whole) {
      CHECK(checked.count(candidate) == 1);
      if (whole_uncompilable.count(candidate) != 0) throw Error(ErrorCode::compile_failed, "refused");
      return "";
    }
    const int now = ++building;
    for (int most = most_building; now > most && !most_building.compare_exchange_weak(most, now);) {
    }
    ++built[candidate];
    std::this_thread::sleep_for(std::chrono::milliseconds(slow_to_build.count(candidate) != 0 ? 100 : 2));
    --building;
    if (no_compiler) throw Error(ErrorCode::no_compiler, "no NVRTC");
    if (uncompilable.count(candidate) != 0) throw Error(ErrorCode::compile_failed, "refused");
    return spills.count(candidate) != 0 ? "spills" : "";
  }
  std::string check(std::size_t candidate, Part part) override {
    CHECK(std::this_thread::get_id() == tuning);
    if (part == Part::whole) {
      completed.insert(candidate);
      return whole_wrong.count(candidate) != 0 ? "is wrong" : "";
    }
    CHECK(built[candidate] == 1);
    checked.insert(candidate);
    if (unlaunchable.count(candidate) != 0) throw Error(ErrorCode::driver_error, "too many resources");
    return wrong.count(candidate) != 0 ? "is wrong" : "";
  }
  std::vector<Timing> time(const std::vector<std::size_t>& candidates, int rounds) override {
    overlapped = overlapped || building > 0;
    if (first_timed.empty()) first_timed = candidates;
    std::vector<Timing> timings;
    for (const std::size_t candidate : candidates) {
      CHECK(checked.count(candidate) == 1);  // nothing is timed that was not verified
      timed[candidate] += rounds;
      timings.push_back({std::vector<double>(static_cast<std::size_t>(rounds), seconds[candidate])});
    }
    return timings;
  }
};

const Dropped* find(const Findings& found, std::size_t candidate) {
  for (const Dropped& dropped : found.dropped) {
    if (dropped.candidate == candidate) return &dropped;
  }
  return nullptr;
}

ErrorCode code_of(Fake& fake, const TunerOptions& options = {}) {
  try {
    (void)rank(fake, fake.seconds.size(), options);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{};
}

}  // namespace

TEST_CASE("candidates that fail are reported and skipped; the best of the others wins") {
  for (const int jobs : {1, 4}) {
    Fake fake({5, 1, 2, 1, 3, 1, 4});
    fake.spills = {1};
    fake.uncompilable = {3};
    fake.unlaunchable = {5};
    fake.wrong = {2};
    std::vector<std::size_t> dones;
    TunerOptions options{.jobs = jobs};
    options.progress = [&](std::size_t, std::size_t done) {
      dones.push_back(done);
      return true;
    };
    const Findings found = rank(fake, 7, options);
    REQUIRE(found.ranking.size() == 3);
    CHECK(found.ranking[0].candidate == 4);
    CHECK(found.ranking[1].candidate == 6);
    CHECK(found.ranking[2].candidate == 0);
    CHECK(found.dropped.size() == 4);
    for (const std::size_t i : {1U, 2U, 3U, 5U}) CHECK(fake.timed[i] == 0);
    // What another driver or another day may mend is not held against it.
    CHECK((find(found, 1)->for_good && find(found, 2)->for_good));
    CHECK_FALSE((find(found, 3)->for_good || find(found, 5)->for_good));
    CHECK(find(found, 5)->why == "too many resources");
    CHECK(dones == std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7});
    CHECK(fake.most_building <= jobs);
  }
}

TEST_CASE("if all of them fail it is an error, also where that is one; without a compiler at once") {
  Fake fake({1, 1, 1});
  fake.spills = {0};
  fake.wrong = {1};
  fake.unlaunchable = {2};
  CHECK(code_of(fake) != ErrorCode{});
  Fake one({1});
  one.uncompilable = {0};
  CHECK(code_of(one) != ErrorCode{});
  Fake none(std::vector<double>(1000, 1.0));
  none.no_compiler = true;
  CHECK(code_of(none) == ErrorCode::no_compiler);
  CHECK(std::count(none.built.begin(), none.built.end(), 0) > 900);
}

TEST_CASE("what may win is complete: all of it works, and of nobody else is all made") {
  Fake fake({9, 1, 2, 3, 4, 5, 6, 7, 8});
  fake.whole_wrong = {1};
  fake.whole_uncompilable = {2};
  const Findings found = rank(fake, 9, {.search = {.cut = 100, .finalists = 3}, .jobs = 2});
  CHECK(found.ranking[0].candidate == 3);
  CHECK(found.ranking.size() == 7);
  CHECK(fake.completed == std::set<std::size_t>{0, 1, 3});  // 0 is the anchor
  REQUIRE(find(found, 1) != nullptr);
  CHECK(find(found, 1)->for_good);
  REQUIRE(find(found, 2) != nullptr);
  CHECK_FALSE(find(found, 2)->for_good);

  Fake hopeless({1, 2, 3});
  hopeless.whole_wrong = {0, 1, 2};
  CHECK(code_of(hopeless) != ErrorCode{});
}

TEST_CASE("the device times what is ready while the rest is built") {
  Fake fake({3, 2, 1, 2});
  fake.slow_to_build = {3};
  TunerOptions options{.jobs = 2};
  CHECK(rank(fake, 4, options).ranking[0].candidate == 2);
  CHECK(fake.overlapped);

  // The anchor is waited for.
  Fake late({1, 2, 3, 4});
  late.slow_to_build = {0};
  const Findings found = rank(late, 4, options);
  CHECK(found.ranking[0].candidate == 0);
  REQUIRE_FALSE(late.first_timed.empty());
  CHECK(late.first_timed.front() == 0);

  // If it fails another one takes its place.
  Fake lost({1, 2, 3, 4});
  lost.wrong = {0};
  CHECK(rank(lost, 4, options).ranking[0].candidate == 1);
}

TEST_CASE("an anchor with known times is timed only beside a new candidate that works") {
  Fake fake({1, 2});
  fake.uncompilable = {1};
  TunerOptions options{.anchor_known = true};
  const Findings nothing = rank(fake, 2, options);
  CHECK(nothing.ranking.empty());
  CHECK(nothing.dropped.size() == 1);
  CHECK(fake.timed == std::vector<int>{0, 0});
  fake.uncompilable.clear();
  fake.built[0] = fake.built[1] = 0;
  CHECK(rank(fake, 2, options).ranking.size() == 2);

  Fake alone({1});
  CHECK(rank(alone, 1, {}).ranking.size() == 1);
}

TEST_CASE("stopping leaves no ranking, and builds nothing more") {
  Fake fake(std::vector<double>(200, 1.0));
  TunerOptions options{.jobs = 2};
  options.progress = [](std::size_t, std::size_t done) { return done < 3; };
  const Findings found = rank(fake, 200, options);
  CHECK(found.stopped);
  CHECK(found.ranking.empty());
  CHECK(std::count(fake.built.begin(), fake.built.end(), 0) > 100);
}
