// What a hit and a write cost does not depend on how many entries there are.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "cache/store.hpp"
#include "cache_fixtures.hpp"
#include "faulty_files.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::entry_path;
using cache::Key;
using cache::Store;
namespace fs = std::filesystem;
using Milliseconds = std::chrono::duration<double, std::milli>;

// Counts what it is asked to do.
class CountingFiles final : public RealFiles {
 public:
  std::vector<char> read(const std::string& path, std::int64_t limit, Info& info, std::error_code& error) override {
    return ++count, RealFiles::read(path, limit, info, error);
  }
  std::vector<char> read_start(const std::string& path, std::size_t most, Info& info, std::error_code& error) override {
    return ++count, RealFiles::read_start(path, most, info, error);
  }
  Info directory_info(const std::string& path, std::error_code& error) override {
    return ++count, RealFiles::directory_info(path, error);
  }
  Info file_info(const std::string& path, std::error_code& error) override {
    return ++count, RealFiles::file_info(path, error);
  }
  std::vector<std::string> list(const std::string& directory, std::error_code& error) override {
    return ++count, RealFiles::list(directory, error);
  }
  std::string write_temporary(const std::string& directory, std::span<const char> bytes,
                              std::error_code& error) override {
    return ++count, RealFiles::write_temporary(directory, bytes, error);
  }
  int count = 0;
};

// Memory rather than a disk, which would be what is measured.
fs::path fastest_parent() {
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
}

// A cache directory in which the programs 0 to 9 have entries, and so many other keys too.
struct Filled {
  Scratch scratch{fastest_parent()};
  std::string directory = scratch / "cache";

  explicit Filled(int others) {
    for (int i = 0; i < 10; ++i)
      REQUIRE(
          Store({.directory = directory}).put(fixtures::key_of(sample_program(i)), sample_program(i), sample_cubin()));
    const std::vector<char> bytes =
        cache::serialize(fixtures::key_of(sample_program()), sample_program(), sample_cubin());
    for (int shard = 0; shard < 256; ++shard) {
      const std::string path = entry_path(directory, {.high = static_cast<std::uint64_t>(shard) << 56, .low = 0});
      fs::create_directories(fs::path(path).parent_path());
      fs::permissions(fs::path(path).parent_path(), fs::perms{0700});
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < others; ++i) {
      const int file = ::open(entry_path(directory, {.high = random(), .low = random()}).c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      REQUIRE(file >= 0);
      REQUIRE(::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
      ::close(file);
    }
  }
};

struct Cost {
  Milliseconds time{};
  int operations = 0;
};

// Of a store that is new, as in a process that has just started.
Cost first_hit(const Filled& filled, int i) {
  CountingFiles files;
  const jit::Program program = sample_program(i % 10);
  const Key key = fixtures::key_of(program);
  const auto start = std::chrono::steady_clock::now();
  Store store({.directory = filled.directory}, files);
  const bool hit = store.find(key, program).has_value();
  const Milliseconds time = std::chrono::steady_clock::now() - start;
  CHECK(hit);
  return {time, files.count};
}

Cost first_write(const Filled& filled, int i) {
  CountingFiles files;
  const jit::Program program = sample_program(1000 + i);
  const Key key = fixtures::key_of(program);
  const auto start = std::chrono::steady_clock::now();
  Store store({.directory = filled.directory}, files);
  const bool put = store.put(key, program, sample_cubin());
  const Milliseconds time = std::chrono::steady_clock::now() - start;
  CHECK(put);
  return {time, files.count};
}

// The median, so that what else the machine does counts for little.
template <class Measure>
std::pair<Cost, Cost> compare(const Filled& few, const Filled& many, Measure measure) {
  std::vector<Milliseconds> times[2];
  Cost costs[2];
  for (int i = 0; i < 51; ++i) {
    for (const int which : {0, 1}) {
      costs[which] = measure(which == 0 ? few : many, i);
      times[which].push_back(costs[which].time);
    }
  }
  for (const int which : {0, 1}) {
    std::ranges::nth_element(times[which], times[which].begin() + 25);
    costs[which].time = times[which][25];
  }
  return {costs[0], costs[1]};
}

}  // namespace

TEST_CASE("the first hit, and a write without a limit, take as long among 100,000 entries as among 10") {
  const char* wanted = std::getenv("JITSOFTMAX_TEST_ENTRIES");  // NOLINT(concurrency-mt-unsafe)
  const int others = wanted != nullptr ? std::atoi(wanted) : 100'000;
  const Filled few(0);
  const Filled many(others);
  const auto check_equal = [&](const std::string& what, const std::pair<Cost, Cost>& costs) {
    MESSAGE(what << ": " << costs.first.time.count() << " ms of 10 entries, " << costs.second.time.count() << " ms of "
                 << others);
    CHECK(costs.first.operations == costs.second.operations);
    CHECK((costs.second.time - costs.first.time).count() < 1);
  };
  check_equal("first hit", compare(few, many, first_hit));
  check_equal("write", compare(few, many, first_write));
}
