// Pruning removes the least recently used entries, no more than asked for, and nothing that is not an
// entry; who reads one meanwhile is not disturbed.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <utime.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include "base/size.hpp"
#include "cache/entry.hpp"
#include "cache/prune.hpp"
#include "cache/store.hpp"
#include "cache_fixtures.hpp"
#include "faulty_files.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::entry_path;
using cache::Keep;
using cache::prune;
using cache::Pruned;
using cache::PruneMode;
using cache::Store;
namespace fs = std::filesystem;

constexpr std::int64_t now = 1'700'000'000;
constexpr std::int64_t day = 24 * 3600;
constexpr Keep nothing{.used_since = std::numeric_limits<std::int64_t>::max()};

void set_time(const std::string& path, std::int64_t seconds) {
  const utimbuf times{.actime = seconds, .modtime = seconds};
  REQUIRE(::utime(path.c_str(), &times) == 0);
}

// Entry i was used i days ago. All have one size, since their names have.
struct Filled {
  Scratch scratch;
  std::string directory = scratch / "cache";
  std::vector<std::string> paths;
  std::int64_t size = 0;

  explicit Filled(int count = 4) {
    for (int i = 0; i < count; ++i) {
      const jit::Program program = sample_program(100 + i);
      REQUIRE(Store({.directory = directory}).put(fixtures::key_of(program), program, sample_cubin()));
      paths.push_back(entry_path(directory, fixtures::key_of(program)));
      set_time(paths.back(), now - i * day);
    }
    size = static_cast<std::int64_t>(fs::file_size(paths[0]));
  }
  [[nodiscard]] std::string left() const {
    std::string result;
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (fs::exists(paths[i])) result += std::to_string(i);
    return result;
  }
  [[nodiscard]] Pruned run(const Keep& keep, PruneMode mode = PruneMode::remove) const {
    return prune(directory, keep, mode, now);
  }
};

}  // namespace

TEST_CASE("a limit removes the least recently used, and no more than it takes") {
  const Filled filled;
  CHECK(filled.run({.bytes = 4 * filled.size}).removed.empty());
  CHECK(filled.left() == "0123");
  const Pruned one = filled.run({.bytes = 4 * filled.size - 1});
  CHECK(filled.left() == "012");
  REQUIRE(one.removed.size() == 1);
  CHECK(one.removed[0].path == filled.paths[3]);
  CHECK(one.removed[0].bytes == filled.size);
  CHECK(one.removed[0].used == now - 3 * day);
  CHECK(one.kept == 3);
  CHECK(one.kept_bytes == 3 * filled.size);
  set_time(filled.paths[2], now + 1);  // used again
  CHECK(filled.run({.bytes = filled.size}).removed.size() == 2);
  CHECK(filled.left() == "2");
  CHECK(filled.run({.bytes = 0}).kept == 0);
  CHECK(filled.left().empty());
  CHECK(filled.run({.bytes = 0}).faults.empty());
}

TEST_CASE("an age removes what was not used since, all removes all, no rule removes nothing") {
  const Filled filled;
  CHECK(filled.run({}).removed.empty());
  CHECK(filled.run({.used_since = now - 2 * day}).removed.size() == 1);
  CHECK(filled.left() == "012");
  CHECK(filled.run(nothing).removed.size() == 3);
  CHECK(filled.left().empty());
  CHECK(prune(filled.scratch / "missing", nothing, PruneMode::remove, now).faults.empty());
}

TEST_CASE("a dry run says what would go, and removes nothing") {
  const Filled filled;
  const std::string temporary = fs::path(filled.paths[0]).parent_path().string() + "/.tmp-0123456789abcdef";
  std::ofstream(temporary) << "half";
  set_time(temporary, now - day);
  const Pruned pretended = filled.run({.bytes = 2 * filled.size}, PruneMode::pretend);
  CHECK(pretended.removed.size() == 2);
  CHECK(pretended.temporaries.size() == 1);
  CHECK(pretended.kept == 2);
  CHECK(filled.left() == "0123");
  CHECK(fs::exists(temporary));
}

TEST_CASE("only temporaries that nobody has written to for an hour are removed") {
  const Filled filled;
  const std::string shard = fs::path(filled.paths[0]).parent_path().string();
  const std::string old_one = shard + "/.tmp-0000000000000000";
  const std::string young = shard + "/.tmp-0000000000000001";
  const std::string foreign = shard + "/.tmp-notes";
  for (const std::string& path : {old_one, young, foreign}) std::ofstream(path) << "half";
  set_time(old_one, now - 3601);
  set_time(young, now - 3600);
  set_time(foreign, now - 365 * day);
  CHECK(filled.run({}).temporaries == std::vector<std::string>{old_one});
  CHECK_FALSE(fs::exists(old_one));
  CHECK(fs::exists(young));
  CHECK(fs::exists(foreign));
}

TEST_CASE("what is not an entry of the cache is neither removed nor counted") {
  const Filled filled;
  const std::string shard = fs::path(filled.paths[0]).parent_path().string();
  const std::string name = shard + '/' + std::string(30, 'a') + ".jsc";
  const auto stays = [&](const std::string& path) {
    CHECK(filled.run({.bytes = 4 * filled.size}).removed.empty());
    CHECK(filled.left() == "0123");
    CHECK(filled.run(nothing).removed.size() == 4);
    CHECK(filled.left().empty());
    CHECK(fs::exists(fs::symlink_status(path)));
  };
  SUBCASE("a file with an entry's name") {
    std::ofstream(name) << std::string(100, 'x');
    stays(name);
  }
  SUBCASE("an empty one") {
    std::ofstream(name) << "";
    stays(name);
  }
  SUBCASE("an entry with another name") {
    fs::copy_file(filled.paths[0], shard + "/backup.jsc");
    stays(shard + "/backup.jsc");
  }
  SUBCASE("a symbolic link, and what it points to") {
    fs::copy_file(filled.paths[0], filled.scratch / "target");
    fs::create_symlink(filled.scratch / "target", name);
    stays(name);
    CHECK(fs::exists(filled.scratch / "target"));
  }
  SUBCASE("a directory and a fifo") {
    fs::create_directory(name);
    REQUIRE(::mkfifo((shard + '/' + std::string(30, 'b') + ".jsc").c_str(), 0600) == 0);
    stays(name);
    CHECK(fs::is_fifo(shard + '/' + std::string(30, 'b') + ".jsc"));
  }
  SUBCASE("tuning records") {
    fs::create_directories(filled.directory + "/records");
    std::ofstream(filled.directory + "/records/a.json") << "{}";
    stays(filled.directory + "/records/a.json");
  }
  SUBCASE("what others may write to") {
    fs::copy_file(filled.paths[0], name);
    fs::permissions(name, fs::perms{0666});
    stays(name);
  }
}

TEST_CASE("a damaged entry, and one of another version, is an entry still") {
  const Filled filled(2);
  fs::resize_file(filled.paths[0], 20);
  CHECK(filled.run(nothing).removed.size() == 2);
  CHECK(filled.left().empty());
}

TEST_CASE("an entry that cannot be removed is named, and the next one goes") {
  const Filled filled;
  // Fails for the least recently used one.
  class OneStays final : public RealFiles {
   public:
    explicit OneStays(std::string path) : path_(std::move(path)) {}
    void remove(const std::string& path, std::error_code& error) override {
      if (path != path_) return RealFiles::remove(path, error);
      error.assign(EBUSY, std::generic_category());
    }

   private:
    std::string path_;
  } files(filled.paths[3]);
  const Pruned pruned = prune(filled.directory, {.bytes = 3 * filled.size}, PruneMode::remove, now, files);
  CHECK(filled.left() == "013");
  REQUIRE(pruned.faults.size() == 1);
  CHECK(pruned.faults[0].path == filled.paths[3]);
  CHECK(pruned.faults[0].reason.find("cannot be removed: ") == 0);
  CHECK(pruned.kept == 3);
}

TEST_CASE("storage that fails loses nothing, and what another process removed counts as gone") {
  for (const Operation operation : {Operation::list, Operation::directory_info, Operation::read, Operation::remove}) {
    CAPTURE(static_cast<int>(operation));
    const Filled filled;
    FaultyFiles files(operation, EIO);
    const Pruned pruned = prune(filled.directory, nothing, PruneMode::remove, now, files);
    CHECK(filled.left() == "0123");
    CHECK(pruned.removed.empty());
    CHECK_FALSE(pruned.faults.empty());
  }
  const Filled filled;
  FaultyFiles raced(Operation::remove, ENOENT);
  const Pruned pruned = prune(filled.directory, {.bytes = filled.size}, PruneMode::remove, now, raced);
  CHECK(pruned.faults.empty());
  CHECK(pruned.kept == 1);
}

TEST_CASE("an entry that is used between listing and removing stays, and the next one goes") {
  const Filled filled;
  // Whoever lists them is overtaken by a reader of the least recently used one.
  class UsedMeanwhile final : public RealFiles {
   public:
    explicit UsedMeanwhile(std::string path) : path_(std::move(path)) {}
    std::vector<char> read_start(const std::string& path, std::size_t count, Info& info,
                                 std::error_code& error) override {
      auto bytes = RealFiles::read_start(path, count, info, error);
      if (path == path_) set_time(path_, now);
      return bytes;
    }

   private:
    std::string path_;
  } files(filled.paths[3]);
  const Pruned pruned = prune(filled.directory, {.bytes = 3 * filled.size}, PruneMode::remove, now, files);
  CHECK(filled.left() == "013");
  CHECK(pruned.removed.size() == 1);
  CHECK(pruned.kept == 3);
  // Of what is to go in any case, it goes.
  set_time(filled.paths[3], now - day);
  CHECK(prune(filled.directory, nothing, PruneMode::remove, now, files).removed.size() == 3);
  CHECK(filled.left().empty());
}

TEST_CASE("of what stays no more than the start is read") {
  const Filled filled;
  class Counting final : public RealFiles {
   public:
    std::vector<char> read(const std::string& path, std::int64_t limit, Info& info, std::error_code& error) override {
      ++whole;
      return RealFiles::read(path, limit, info, error);
    }
    std::vector<char> read_start(const std::string& path, std::size_t count, Info& info,
                                 std::error_code& error) override {
      auto bytes = RealFiles::read_start(path, count, info, error);
      most = std::max(most, bytes.size());
      return bytes;
    }
    int whole = 0;
    std::size_t most = 0;
  } files;
  CHECK(prune(filled.directory, {.bytes = filled.size}, PruneMode::remove, now, files).removed.size() == 3);
  CHECK(files.whole == 0);
  CHECK(files.most == cache::entry_magic_bytes);
}

TEST_CASE("a reader that has an entry open reads all of it") {
  const Filled filled(1);
  std::ifstream reader;
  reader.rdbuf()->pubsetbuf(nullptr, 0);  // the rest is read when the entry is gone
  reader.open(filled.paths[0], std::ios::binary);
  REQUIRE(reader.get() == 'j');
  CHECK(filled.run(nothing).removed.size() == 1);
  const std::string rest{std::istreambuf_iterator<char>(reader), {}};
  CHECK(rest.size() == static_cast<std::size_t>(filled.size) - 1);
}

TEST_CASE("readers and writers at work while entries are pruned: each look-up is whole or a miss") {
  const Scratch scratch;
  const std::string directory = scratch / "cache";
  const jit::Cubin cubin = sample_cubin(20'000);
  Recorder recorder;
  Store store({.directory = directory, .log = recorder.log()});
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> hits{0};
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < 3; ++worker) {
    workers.emplace_back([&] {
      for (int i = 0; !stop; i = (i + 1) % 4) {
        const jit::Program program = sample_program(i);
        const auto found = store.find(fixtures::key_of(program), program);
        if (found) {
          wrong += same(*found, cubin) ? 0 : 1;
          ++hits;
        } else if (!store.put(fixtures::key_of(program), program, cubin)) {
          ++wrong;
        }
      }
    });
  }
  std::size_t removed = 0;
  // Until all of it has been seen to happen: the workers may take long to start on a busy machine.
  const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto seen = [&] { return hits > 0 && removed > 0; };
  for (int round = 0; round < 100 || (!seen() && std::chrono::steady_clock::now() < latest); ++round)
    removed += prune(directory, {.bytes = round % 2 == 0 ? 0 : 45'000}, PruneMode::remove, now).removed.size();
  stop = true;
  workers.clear();
  CHECK(wrong == 0);
  CHECK(hits > 0);
  CHECK(removed > 0);
  CHECK(store.rejected() == 0);
  CHECK(recorder.messages().empty());
  (void)prune(directory, nothing, PruneMode::remove, now);
  CHECK(files_below(directory).empty());
}

TEST_CASE("a size is digits and at most a unit") {
  using base::parse_size;
  CHECK(parse_size("0") == 0);
  CHECK(parse_size("500000") == 500000);
  CHECK(parse_size("3K") == 3072);
  CHECK(parse_size("3kb") == 3072);
  CHECK(parse_size("64MB") == std::int64_t{64} << 20);
  CHECK(parse_size("2g") == std::int64_t{2} << 30);
  CHECK(parse_size("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", "-1", "-0", "+1", " 1", "1 ", "K", "1B", "1KK", "1KiB", "1T", "1.5M", "0x10",
                           "9223372036854775808", "9007199254740992K", "8589934592G"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size(text));
  }
}
