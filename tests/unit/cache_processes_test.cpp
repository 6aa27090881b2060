// Many processes and threads with one cache directory, and processes that are killed while they write.
// None of them fails, and what they leave is whole entries, and temporaries that pruning removes.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <numeric>
#include <random>
#include <thread>

#include "cache/check.hpp"
#include "cache/prune.hpp"
#include "cache/store.hpp"
#include "cache/walk.hpp"
#include "cache_fixtures.hpp"
#include "tune/records.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::check;
using cache::Condition;
using cache::Key;
using cache::Store;

const jit::Program program = sample_program();
const Key key = fixtures::key_of(program);

std::vector<std::string> sorted(std::vector<std::string> paths) {
  std::ranges::sort(paths);
  return paths;
}

// Starts a process that repeats `step`, lets it begin, and kills it some time within the next 8 ms.
void kill_at_work(std::mt19937& random, const std::function<void(int)>& step) {
  int begun[2];
  REQUIRE(::pipe(begun) == 0);
  const pid_t child = start_child([&]() -> int {
    ::alarm(60);  // should the parent be gone
    if (::write(begun[1], "", 1) != 1) return 1;
    for (int i = 0;; ++i) step(i);
  });
  char byte = 0;
  REQUIRE(::read(begun[0], &byte, 1) == 1);
  ::close(begun[0]);
  ::close(begun[1]);
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(wait_for(child) == 1000 + SIGKILL);
}

// By no rule but that of temporaries, when all that there are have been abandoned.
cache::Pruned prune_later(const std::string& directory) {
  const auto later = std::chrono::system_clock::now() + std::chrono::seconds(cache::abandoned_seconds + 5);
  return cache::prune(directory, {}, cache::PruneMode::remove,
                      std::chrono::duration_cast<std::chrono::seconds>(later.time_since_epoch()).count());
}

// Starts so many children, lets all of them go at once, and waits. Each returns 0 if it is content.
void run_at_once(int count, const std::function<int(int)>& body) {
  int gate[2];
  REQUIRE(::pipe(gate) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    children.push_back(start_child([&] {
      ::close(gate[1]);
      char byte = 0;
      if (::read(gate[0], &byte, 1) != 0) return 254;  // until the parent closes its end
      return body(i);
    }));
  }
  ::close(gate[0]);
  ::close(gate[1]);
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
}

}  // namespace

TEST_CASE("cold processes that want one key all get it and leave one entry") {
  for (const int count : {16, 64}) {
    CAPTURE(count);
    const Scratch scratch;
    run_at_once(count, [&](int) {
      Recorder recorder;
      Store store({.directory = scratch / "a/b/cache", .log = recorder.log()});
      const jit::Cubin cubin = sample_cubin(50'000);
      const auto found = store.find(key, program);
      if (found && !same(*found, cubin)) return 2;
      if (!found && !store.put(key, program, cubin)) return 3;
      const auto again = store.find(key, program);
      if (!again || !same(*again, cubin)) return 4;
      return recorder.messages().empty() && store.rejected() == 0 ? 0 : 5;
    });
    const auto files = files_below(scratch.path());
    CHECK(files == std::vector<std::string>{cache::entry_path(scratch / "a/b/cache", key)});
    CHECK(check(files.at(0)).condition == Condition::valid);
  }
}

TEST_CASE("cold processes that want many keys, each in an order of its own, leave one valid entry a key") {
  constexpr int keys = 48;
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  const Scratch scratch;
  const std::string directory = scratch / "cache";
  run_at_once(64, [&](int process) {
    std::vector<int> order(keys);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, std::mt19937(seed + static_cast<unsigned>(process)));
    Recorder recorder;
    Store store({.directory = directory, .log = recorder.log()});
    for (const int i : order) {
      const jit::Program wanted = sample_program(i);
      const jit::Cubin cubin = sample_cubin(5'000 + static_cast<std::size_t>(i));
      const auto found = store.find(fixtures::key_of(wanted), wanted);
      if (found && !same(*found, cubin)) return 2;
      if (!found && !store.put(fixtures::key_of(wanted), wanted, cubin)) return 3;
    }
    return recorder.messages().empty() && store.rejected() == 0 ? 0 : 4;
  });
  std::vector<std::string> expected;
  for (int i = 0; i < keys; ++i) expected.push_back(cache::entry_path(directory, fixtures::key_of(sample_program(i))));
  CHECK(sorted(files_below(scratch.path())) == sorted(expected));
  for (const std::string& path : expected) CHECK(check(path).condition == Condition::valid);
}

TEST_CASE(
    "a limit with writers and readers at work: it is kept, no more than it takes is removed, nobody is disturbed") {
  constexpr int kept = 20;
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  const Scratch scratch;
  const std::string directory = scratch / "cache";
  const jit::Cubin cubin = sample_cubin(20'000);
  const auto numbered = [](int i) { return sample_program(1000 + i); };  // of one size
  REQUIRE(Store({.directory = directory}).put(fixtures::key_of(numbered(0)), numbered(0), cubin));
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(files_below(directory).at(0)));
  int next = 1;
  for (; next < kept; ++next)
    REQUIRE(Store({.directory = directory}).put(fixtures::key_of(numbered(next)), numbered(next), cubin));
  for (int round = 0; round < 40; ++round, next += 2) {
    CAPTURE(round);
    run_at_once(4, [&](int process) {
      Recorder recorder;
      Store store({.directory = directory, .log = recorder.log(), .limit = kept * size + size / 2});
      std::mt19937 random(seed + static_cast<unsigned>(4 * round + process));
      if (process < 2) {
        const jit::Program program = numbered(next + process);
        if (!store.put(fixtures::key_of(program), program, cubin)) return 1;
      } else {
        for (int i = 0; i < 100; ++i) {
          const jit::Program program = numbered(static_cast<int>(random() % static_cast<unsigned>(next + 2)));
          const auto found = store.find(fixtures::key_of(program), program);
          if (found && !same(*found, cubin)) return 2;
        }
      }
      return recorder.messages().empty() && store.rejected() == 0 ? 0 : 3;
    });
    // Whoever lists last sees both new entries, and the other one removes none that it would keep.
    CHECK(files_below(directory).size() == kept);
  }
}

TEST_CASE("a process killed at any moment of a write leaves nothing to trip over") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const Scratch scratch;
  const std::string directory = scratch / "cache";
  const jit::Cubin cubin = sample_cubin(300'000);
  int hits = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    Store writer({.directory = directory});
    kill_at_work(random, [&](int i) {
      (void)writer.put(fixtures::key_of(sample_program(i % 5)), sample_program(i % 5), cubin);
    });

    Recorder recorder;
    Store store({.directory = directory, .log = recorder.log()});
    for (int i = 0; i < 5; ++i) hits += store.find(fixtures::key_of(sample_program(i)), sample_program(i)) ? 1 : 0;
    CHECK(store.rejected() == 0);
    CHECK(recorder.messages().empty());
  }
  CHECK(hits > 0);
  const cache::Contents contents = cache::walk(directory);
  CHECK(contents.faults.empty());
  CHECK(contents.entries.size() + contents.temporaries.size() == files_below(scratch.path()).size());
  for (const std::string& path : contents.entries) CHECK(check(path).condition == Condition::valid);
  CHECK(contents.temporaries.size() > 0);  // or the processes were not killed while they wrote
  MESSAGE("of 200 killed writers " << contents.temporaries.size() << " left a temporary");

  CHECK(prune_later(directory).temporaries == contents.temporaries);
  CHECK(sorted(files_below(scratch.path())) == contents.entries);
  CHECK(Store({.directory = directory}).put(key, program, cubin));
}

TEST_CASE("nobody waits for a process that was killed while it kept a tuning record") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const Scratch scratch;
  const tune::RecordKey record_key{.problem = {.cols = 64}, .device = "NVIDIA H200", .driver_major = 13};
  const auto records = [&] {
    return tune::Records({.layers = {}, .directory = scratch / "cache", .templates = std::string(32, 'a'), .log = {}});
  };
  const auto add = [&](int i) {
    return records().add(record_key,
                         {.rows = 64, .entries = {{.specialization = "s" + std::to_string(i), .rejected = "spills"}}});
  };
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    kill_at_work(random, [&](int i) { (void)add(i % 100); });
    // In a child that a lock which is never released would end.
    CHECK(in_child([&] {
            ::alarm(20);
            return add(1000) && records().find(record_key) ? 0 : 1;
          }) == 0);
  }
  CHECK(records().find(record_key)->find("s1000") != nullptr);
  const cache::Contents contents = cache::walk(scratch / "cache");
  CHECK(contents.temporaries.size() > 0);
  CHECK(prune_later(scratch / "cache").temporaries == contents.temporaries);
  CHECK(files_below(scratch.path()).size() == 2);  // the record and its lock
}

TEST_CASE("one store serves many threads") {
  const Scratch scratch;
  Recorder recorder;
  Store store({.directory = scratch / "cache", .log = recorder.log()});
  const jit::Cubin cubin = sample_cubin(20'000);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const jit::Program wanted = sample_program(i % 4);
        const Key wanted_key = fixtures::key_of(wanted);
        const auto found = store.find(wanted_key, wanted);
        if (found && !same(*found, cubin)) ++wrong;
        if (!found && !store.put(wanted_key, wanted, cubin)) ++wrong;
        // A report from several threads at once.
        (void)store.put(wanted_key, wanted, jit::Cubin{});
      }
    });
  }
  threads.clear();
  CHECK(wrong == 0);
  CHECK(files_below(scratch.path()).size() == 4);
  CHECK(recorder.messages().size() == 4);
}
