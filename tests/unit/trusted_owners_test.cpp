// Promise: what a trusted owner has is used as if root had it, and what anybody else has is not. Needs root,
// who can give files to others; skipped without.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cache/check.hpp"
#include "cache/prune.hpp"
#include "cache/store.hpp"
#include "cache_fixtures.hpp"
#include "faulty_files.hpp"
#include "tune/records.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::Store;

constexpr uid_t builder = 54321;
constexpr uid_t stranger = 54322;
const jit::Program program = sample_program();
const cache::Key key = fixtures::key_of(program);
const std::string templates(32, 'a');
const tune::RecordKey record_key{.problem = {.cols = 4096}, .device = "NVIDIA H200", .driver_major = 13};

// A layer of `builder`, with one entry and one record.
struct Layer {
  Scratch scratch;
  std::string path = scratch / "layer";
  std::string entry = cache::entry_path(path, key);

  Layer() {
    if (::geteuid() != 0) {
      std::printf("skipped: only root can make another user's files\n");
      std::exit(77);  // NOLINT(concurrency-mt-unsafe): nothing else runs
    }
    REQUIRE(Store({.directory = path}).put(key, program, sample_cubin()));
    REQUIRE(tune::Records({.directory = path, .templates = templates})
                .add(record_key, {.rows = 1, .entries = {{.specialization = "a", .rejected = "spills"}}}));
    REQUIRE(::chmod(scratch.path().c_str(), 0755) == 0);
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
    REQUIRE(::chown(path.c_str(), builder, builder) == 0);
    for (const auto& item : std::filesystem::recursive_directory_iterator(path)) {
      REQUIRE(::chmod(item.path().c_str(), item.is_directory() ? 0755U : 0644U) == 0);
      REQUIRE(::chown(item.path().c_str(), builder, builder) == 0);
    }
  }
  [[nodiscard]] bool serves(const cache::Owners& trusted) const {
    return Store({.layers = {path}, .trusted = trusted}).find(key, program).has_value();
  }
  [[nodiscard]] bool has_record(const cache::Owners& trusted) const {
    return tune::Records({.layers = {path}, .templates = templates, .trusted = trusted}).find(record_key).has_value();
  }
};

// As a user who is neither.
bool as_nobody(const std::function<bool()>& body) {
  return in_child([&] {
           if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
               ::setresuid(nobody, nobody, nobody) != 0)
             return 2;
           return body() ? 0 : 1;
         }) == 0;
}

}  // namespace

TEST_CASE("a layer of another user serves where that user is trusted, and only there") {
  const Layer layer;
  CHECK_FALSE(layer.serves({}));
  CHECK_FALSE(layer.serves({stranger}));
  CHECK(layer.serves({stranger, builder}));
  CHECK(as_nobody([&] { return !layer.serves({stranger}) && layer.serves({builder}); }));
  CHECK_FALSE(layer.has_record({}));
  CHECK(layer.has_record({builder}));
  CHECK(as_nobody([&] { return !layer.has_record({stranger}) && layer.has_record({builder}); }));
}

TEST_CASE("every walk over it asks the same") {
  const Layer layer;
  base::FileSystem& files = base::file_system();
  CHECK(cache::walk(layer.path, files).entries.empty());
  CHECK(cache::walk(layer.path, files, {builder}).entries == std::vector<std::string>{layer.entry});
  CHECK(cache::check(layer.entry, files).condition == cache::Condition::refused);
  CHECK(cache::check(layer.entry, files, {builder}).condition != cache::Condition::refused);
  CHECK(tune::list_records(layer.path, templates, files).front().ignored.starts_with("belongs to user 54321"));
  CHECK(tune::list_records(layer.path, templates, files, {builder}).front().ignored.empty());
  CHECK(cache::prune(layer.path, {.bytes = 0}, cache::PruneMode::pretend, 0, files).removed.empty());
  CHECK(cache::prune(layer.path, {.bytes = 0}, cache::PruneMode::pretend, 0, files, {builder}).removed.size() == 1);
}

TEST_CASE("trust in an owner is no trust in whoever else could have written it") {
  const Layer layer;
  const std::string shard = std::filesystem::path(layer.entry).parent_path();
  SUBCASE("the group may write") {
    for (const std::string& path : {layer.path, shard, layer.entry}) {
      struct stat info = {};
      REQUIRE(::stat(path.c_str(), &info) == 0);
      REQUIRE(::chmod(path.c_str(), info.st_mode | 020U) == 0);
      CHECK_FALSE(layer.serves({builder}));
      REQUIRE(::chmod(path.c_str(), info.st_mode) == 0);
    }
  }
  SUBCASE("a part of it belongs to a stranger") {
    for (const std::string& path : {layer.path, shard, layer.entry}) {
      REQUIRE(::chown(path.c_str(), stranger, stranger) == 0);
      CHECK_FALSE(layer.serves({builder}));
      REQUIRE(::chown(path.c_str(), builder, builder) == 0);
    }
  }
  SUBCASE("a link") {
    std::filesystem::rename(layer.entry, layer.scratch / "entry");
    std::filesystem::create_symlink(layer.scratch / "entry", layer.entry);
    REQUIRE(::lchown(layer.entry.c_str(), builder, builder) == 0);
    CHECK_FALSE(layer.serves({builder}));
  }
  CHECK_FALSE(layer.serves({}));
}

TEST_CASE("the owner is that of the file that was opened, however often its path changes hands") {
  const Layer layer;
  // The path is a stranger's when it is opened, and the builder's whenever it is looked at.
  struct Swapped final : RealFiles {
    explicit Swapped(std::string entry) : entry_(std::move(entry)) {}
    std::vector<char> read(const std::string& path, std::int64_t limit, Info& info, std::error_code& error) override {
      if (path == entry_) REQUIRE(::chown(entry_.c_str(), stranger, stranger) == 0);
      auto bytes = RealFiles::read(path, limit, info, error);
      if (path == entry_) REQUIRE(::chown(entry_.c_str(), builder, builder) == 0);
      return bytes;
    }
    std::string entry_;
  } files(layer.entry);
  CHECK_FALSE(Store({.layers = {layer.path}, .trusted = {builder}}, files).find(key, program));
  CHECK(layer.serves({builder}));
}
