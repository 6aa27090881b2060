// Work that many threads ask for at once is done once; a failure is shared and then forgotten.
#include "cache/single_flight.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cache/key.hpp"

namespace {

using Flights = jitsoftmax::cache::SingleFlight<int, std::string>;

// `flying` counts threads that are about to call run(); the maker waits for all of them and then a
// moment, so that all have joined its flight.
void wait_for_all(std::latch& flying) {
  flying.wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
}

}  // namespace

TEST_CASE("32 threads that ask for one key make it once and share the result") {
  constexpr int count = 32;
  Flights flights;
  std::atomic<int> made{0};
  std::atomic<int> right{0};
  std::latch flying(count);
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      flying.count_down();
      const std::string result = flights.run(7, [&] {
        ++made;
        wait_for_all(flying);
        return std::string("made");
      });
      right += result == "made" ? 1 : 0;
    });
  }
  threads.clear();
  CHECK(made == 1);
  CHECK(right == count);
}

TEST_CASE("a failure reaches all who wait, and the next caller tries again") {
  constexpr int count = 32;
  Flights flights;
  std::atomic<int> made{0};
  std::atomic<int> caught{0};
  std::atomic<int> retried{0};
  std::latch flying(count);
  std::barrier failed(count);
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      flying.count_down();
      try {
        flights.run(7, [&]() -> std::string {
          ++made;
          wait_for_all(flying);
          throw std::runtime_error("no compiler");
        });
      } catch (const std::runtime_error& error) {
        caught += std::string(error.what()) == "no compiler" ? 1 : 0;
      }
      failed.arrive_and_wait();
      retried += flights.run(7, [] { return std::string("made"); }) == "made" ? 1 : 0;
    });
  }
  threads.clear();
  CHECK(made == 1);
  CHECK(caught == count);
  CHECK(retried == count);
}

TEST_CASE("who has seen a failure never sees it again") {
  Flights flights;
  std::atomic<int> stale{0};
  std::atomic<int> serial{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      int last = -1;
      for (int round = 0; round < 2000; ++round) {
        try {
          flights.run(7, [&]() -> std::string { throw serial++; });
        } catch (int failure) {
          stale += failure == last ? 1 : 0;
          last = failure;
        }
      }
    });
  }
  threads.clear();
  CHECK(stale == 0);
}

TEST_CASE("different keys are made in parallel") {
  constexpr int count = 8;
  Flights flights;
  std::barrier all_inside(count);  // never passed, were one to wait for another
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      const std::string result = flights.run(i, [&] {
        all_inside.arrive_and_wait();
        return std::to_string(i);
      });
      right += result == std::to_string(i) ? 1 : 0;
    });
  }
  threads.clear();
  CHECK(right == count);
}

TEST_CASE("nothing is remembered, and cache keys are keys") {
  jitsoftmax::cache::SingleFlight<jitsoftmax::cache::Key, int, jitsoftmax::cache::Key::Hash> flights;
  int made = 0;
  for (int i = 1; i <= 3; ++i) CHECK(flights.run({.high = 1, .low = 2}, [&] { return ++made; }) == i);
}
