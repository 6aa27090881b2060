// Many processes and threads with one cache directory, and processes that are killed while they write.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "cache/store.hpp"
#include "cache_fixtures.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::Key;
using cache::Store;

const jit::Program program = sample_program();
const Key key = fixtures::key_of(program);

bool valid(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  return std::holds_alternative<cache::Description>(cache::inspect(bytes));
}

}  // namespace

TEST_CASE("cold processes that want one key all get it and leave one entry") {
  for (const int count : {16, 64}) {
    CAPTURE(count);
    const Scratch scratch;
    int gate[2];
    REQUIRE(::pipe(gate) == 0);
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) {
      children.push_back(start_child([&] {
        ::close(gate[1]);
        char byte = 0;
        if (::read(gate[0], &byte, 1) != 0) return 1;  // until the parent closes its end
        Recorder recorder;
        Store store({.directory = scratch / "a/b/cache", .log = recorder.log()});
        const jit::Cubin cubin = sample_cubin(50'000);
        const auto found = store.find(key, program);
        if (found && !same(*found, cubin)) return 2;
        if (!found && !store.put(key, program, cubin)) return 3;
        const auto again = store.find(key, program);
        if (!again || !same(*again, cubin)) return 4;
        return recorder.messages().empty() && store.rejected() == 0 ? 0 : 5;
      }));
    }
    ::close(gate[0]);
    ::close(gate[1]);
    for (const pid_t child : children) CHECK(wait_for(child) == 0);
    const auto files = files_below(scratch.path());
    CHECK(files == std::vector<std::string>{cache::entry_path(scratch / "a/b/cache", key)});
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
    const pid_t child = start_child([&]() -> int {
      ::alarm(60);  // should the parent be gone
      Store store({.directory = directory});
      for (int i = 0;; ++i) (void)store.put(fixtures::key_of(sample_program(i % 5)), sample_program(i % 5), cubin);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    REQUIRE(::kill(child, SIGKILL) == 0);
    REQUIRE(wait_for(child) == 1000 + SIGKILL);

    Recorder recorder;
    Store store({.directory = directory, .log = recorder.log()});
    for (int i = 0; i < 5; ++i) hits += store.find(fixtures::key_of(sample_program(i)), sample_program(i)) ? 1 : 0;
    CHECK(store.rejected() == 0);
    CHECK(recorder.messages().empty());
  }
  CHECK(hits > 0);
  for (const std::string& path : files_below(directory))
    if (path.ends_with(".jsc")) CHECK(valid(path));
  CHECK(Store({.directory = directory}).put(key, program, cubin));
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
