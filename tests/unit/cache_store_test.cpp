// The cache directories: order, location, who is believed, and that entries replace what is damaged.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cache/check.hpp"
#include "cache/store.hpp"
#include "cache_fixtures.hpp"
#include "cache_sealed.hpp"
#include "faulty_files.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::entry_path;
using cache::Key;
using cache::resolve_directory;
using cache::Store;
using jitsoftmax::testing::resealed;
using jitsoftmax::testing::store_number;
namespace fs = std::filesystem;

const jit::Program program = sample_program();
const Key key = fixtures::key_of(program);
const jit::Cubin cubin = sample_cubin();

unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

// A directory that holds the entry, as made by the NVRTC of this version.
std::string filled(const std::string& directory, const std::string& version = "13.0") {
  jit::Cubin made = cubin;
  made.compiler = version;
  REQUIRE(Store({.directory = directory}).put(key, program, made));
  return directory;
}

void overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// The entry in `directory` is refused with one warning that has `reason`, and counted.
void check_refused(const std::string& directory, const std::string& reason) {
  Recorder recorder;
  Store store({.directory = directory, .log = recorder.log()});
  CHECK_FALSE(store.find(key, program));
  CHECK_FALSE(store.find(key, program));
  CHECK(store.rejected() == 2);
  REQUIRE(recorder.messages().size() == 1);
  CAPTURE(recorder.messages()[0]);
  CHECK(recorder.messages()[0].find(reason) != std::string::npos);
}

// ... and then replaced.
void check_refused_and_replaced(const std::string& directory, const std::string& reason) {
  check_refused(directory, reason);
  Recorder recorder;
  Store store({.directory = directory, .log = recorder.log()});
  CHECK(store.put(key, program, cubin));
  CHECK(store.find(key, program));
  CHECK(recorder.messages().empty());
  CHECK(files_below(directory).size() == 1);
}

}  // namespace

TEST_CASE("the writable directory: option, XDG_CACHE_HOME, HOME, in this order") {
  using Maybe = std::optional<std::string>;
  const Maybe none;
  CHECK(resolve_directory("/o", "/x", "/h") == "/o");
  CHECK(resolve_directory("", "/x", "/h").empty());
  CHECK(resolve_directory(none, "/x", "/h") == "/x/jitsoftmax");
  CHECK(resolve_directory(none, none, "/h") == "/h/.cache/jitsoftmax");
  CHECK(resolve_directory(none, "relative", "/h") == "/h/.cache/jitsoftmax");
  CHECK(resolve_directory(none, none, none).empty());
  CHECK(resolve_directory(none, none, "/").empty());
  CHECK(resolve_directory(none, none, "//").empty());
  CHECK(resolve_directory(none, none, "home").empty());
  CHECK(resolve_directory(none, "relative", "/").empty());
  CHECK(in_child([] {
          ::setenv("HOME", "/h", 1);
          ::setenv("XDG_CACHE_HOME", "", 1);  // empty counts as unset
          if (resolve_directory(std::nullopt) != "/h/.cache/jitsoftmax") return 1;
          ::setenv("XDG_CACHE_HOME", "/x", 1);
          return resolve_directory(std::nullopt) == "/x/jitsoftmax" ? 0 : 2;
        }) == 0);
}

TEST_CASE("nothing is created before the first write, and then for the owner alone") {
  const Scratch scratch;
  const std::string directory = scratch / "missing/parents/cache";
  Recorder recorder;
  Store store({.directory = directory, .log = recorder.log()});
  CHECK_FALSE(store.find(key, program));
  CHECK_FALSE(fs::exists(scratch / "missing"));

  const mode_t before = ::umask(0);
  CHECK(store.put(key, program, cubin));
  ::umask(before);
  for (const char* part : {"missing", "missing/parents", "missing/parents/cache"})
    CHECK(mode_of(scratch / part) == 0700);
  const std::string path = entry_path(directory, key);
  CHECK(path == directory + "/" + key.hex().substr(0, 2) + "/" + key.hex().substr(2) + ".jsc");
  CHECK(mode_of(fs::path(path).parent_path()) == 0700);
  CHECK(mode_of(path) == 0600);
  CHECK(files_below(scratch.path()) == std::vector<std::string>{path});

  const auto found = store.find(key, program);
  REQUIRE(found);
  CHECK(same(*found, cubin));
  CHECK(store.rejected() == 0);
  CHECK(recorder.messages().empty());
}

TEST_CASE("directories are asked in order, a damaged layer gives way to the next") {
  const Scratch scratch;
  const std::string first = filled(scratch / "first", "1.0");
  const std::string second = filled(scratch / "second", "2.0");
  const std::string writable = filled(scratch / "writable", "3.0");
  const auto compiler = [](std::vector<std::string> layers, const std::string& directory) -> std::string {
    const auto found = Store({.layers = std::move(layers), .directory = directory}).find(key, program);
    return found ? found->compiler : "none";
  };
  CHECK(compiler({first, second}, writable) == "1.0");
  CHECK(compiler({second, first}, writable) == "2.0");
  CHECK(compiler({scratch / "none", second}, writable) == "2.0");
  CHECK(compiler({}, writable) == "3.0");
  CHECK(compiler({}, "") == "none");
  overwrite(entry_path(first, key), "damaged");
  CHECK(compiler({first, second}, writable) == "2.0");
  fs::permissions(second, fs::perms{0777});
  CHECK(compiler({first, second}, writable) == "3.0");
  CHECK(compiler({first}, "") == "none");
}

TEST_CASE("layers are never written to") {
  const Scratch scratch;
  fs::create_directory(scratch / "layer");
  Recorder recorder;
  Store store({.layers = {scratch / "layer"}, .directory = "", .log = recorder.log()});
  CHECK_FALSE(store.put(key, program, cubin));
  CHECK(files_below(scratch.path()).empty());
  CHECK(recorder.messages().empty());
}

TEST_CASE("a damaged entry is a miss, reported once, and replaced") {
  const Scratch scratch;
  const std::string directory = filled(scratch / "cache");
  const std::string path = entry_path(directory, key);
  const std::uintmax_t size = fs::file_size(path);

  overwrite(path, "");
  check_refused_and_replaced(directory, "is empty");
  fs::resize_file(path, size / 2);
  check_refused_and_replaced(directory, "checksum");
  overwrite(path, std::string(1000, 'x'));
  check_refused_and_replaced(directory, "no cache entry");
  fs::resize_file(path, static_cast<std::uintmax_t>(cache::max_entry_bytes) + 1);  // a sparse file
  check_refused_and_replaced(directory, "larger");
}

TEST_CASE("the entry of another key under this name is a miss, and replaced") {
  const Scratch scratch;
  const std::string directory = filled(scratch / "cache");
  const jit::Program other = sample_program(1);
  const std::string other_path = entry_path(directory, fixtures::key_of(other));
  REQUIRE(Store({.directory = directory}).put(fixtures::key_of(other), other, cubin));
  fs::rename(other_path, entry_path(directory, key));
  check_refused_and_replaced(directory, "another key");
}

TEST_CASE("what sits in an entry's place neither blocks nor throws") {
  const Scratch scratch;
  const std::string directory = filled(scratch / "cache");
  const std::string path = entry_path(directory, key);
  SUBCASE("a fifo is replaced") {
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    check_refused_and_replaced(directory, "no regular file");
  }
  SUBCASE("a symbolic link is replaced, and what it points to is not touched") {
    fs::rename(path, scratch / "target");
    fs::create_symlink(scratch / "target", path);
    const auto size = fs::file_size(scratch / "target");
    check_refused_and_replaced(directory, "symbolic link");
    CHECK(fs::file_size(scratch / "target") == size);
  }
  SUBCASE("a directory stays, with one warning, and other entries are written") {
    fs::remove(path);
    fs::create_directory(path);
    overwrite(path + "/precious", "content");
    Recorder recorder;
    Store store({.directory = directory, .log = recorder.log()});
    for (int round = 0; round < 3; ++round) {
      CHECK_FALSE(store.find(key, program));
      CHECK_FALSE(store.put(key, program, cubin));
    }
    CHECK(recorder.messages().size() == 1);
    CHECK(files_below(directory) == std::vector<std::string>{path + "/precious"});
    const jit::Program other = sample_program(1);
    CHECK(store.put(fixtures::key_of(other), other, cubin));
    CHECK(store.find(fixtures::key_of(other), other));
  }
  SUBCASE("a file in place of the shard: one warning, and other shards are written") {
    const fs::path shard = fs::path(path).parent_path();
    fs::remove_all(shard);
    overwrite(shard, "content");
    Recorder recorder;
    Store store({.directory = directory, .log = recorder.log()});
    CHECK_FALSE(store.find(key, program));
    CHECK_FALSE(store.put(key, program, cubin));
    CHECK(recorder.messages().size() == 1);
    const jit::Program other = sample_program(1);
    REQUIRE(fixtures::key_of(other).hex().substr(0, 2) != key.hex().substr(0, 2));
    CHECK(store.put(fixtures::key_of(other), other, cubin));
  }
}

TEST_CASE("what others could have written is refused") {
  const Scratch scratch;
  const std::string directory = filled(scratch / "cache");
  const std::string path = entry_path(directory, key);
  const std::string shard = fs::path(path).parent_path().string();
  const auto refuses_all = [&](const std::string& where, const std::string& reason) {
    check_refused(where, reason);
    const auto files = files_below(where);
    Recorder recorder;
    Store store({.directory = where, .log = recorder.log()});
    CHECK_FALSE(store.find(key, program));
    CHECK_FALSE(store.put(key, program, cubin));
    CHECK(recorder.messages().size() == 1);
    CHECK(files_below(where) == files);
  };
  SUBCASE("a directory that everybody may write to") {
    fs::permissions(directory, fs::perms{0777});
    refuses_all(directory, "writable by everybody");
    fs::permissions(directory, fs::perms{01777});
    refuses_all(directory, "writable by everybody");
    fs::permissions(directory, fs::perms{0770});
    refuses_all(directory, "writable by its group");
    fs::permissions(directory, fs::perms{0755});
    CHECK(Store({.directory = directory}).find(key, program));
  }
  SUBCASE("a shard that everybody may write to") {
    fs::permissions(shard, fs::perms{0777});
    refuses_all(directory, "writable by everybody");
  }
  SUBCASE("a directory behind a symbolic link") {
    fs::create_directory_symlink(directory, scratch / "link");
    refuses_all(scratch / "link", "symbolic link");
    refuses_all(scratch / "link/", "symbolic link");
  }
  SUBCASE("a shard behind a symbolic link") {
    fs::rename(shard, scratch / "elsewhere");
    fs::create_directory_symlink(scratch / "elsewhere", shard);
    refuses_all(directory, "symbolic link");
  }
  SUBCASE("an entry that others may write to") {
    fs::permissions(path, fs::perms{0602});
    check_refused_and_replaced(directory, "writable by everybody");
    fs::permissions(path, fs::perms{0620});
    check_refused_and_replaced(directory, "writable by its group");
  }
  SUBCASE("another owner's") {
    if (::geteuid() != 0) {
      MESSAGE("SKIPPED: only root can give files away");
      return;
    }
    REQUIRE(::chown(path.c_str(), nobody, nobody) == 0);
    check_refused_and_replaced(directory, "belongs to user 65534");
    REQUIRE(::chown(shard.c_str(), nobody, nobody) == 0);
    refuses_all(directory, "belongs to user 65534");
    REQUIRE(::chown(directory.c_str(), nobody, nobody) == 0);
    refuses_all(directory, "belongs to user 65534");
  }
}

TEST_CASE("root's read-only layer serves other users") {
  if (::geteuid() != 0) {
    MESSAGE("SKIPPED: only root can make a layer of root");
    return;
  }
  const Scratch scratch;
  const std::string layer = filled(scratch / "layer");
  for (const auto& item : fs::recursive_directory_iterator(layer))
    fs::permissions(item.path(), fs::perms{item.is_directory() ? 0755U : 0644U});
  fs::permissions(layer, fs::perms{0755});
  CHECK(as_plain_user(scratch.path(), [&] {
          Recorder recorder;
          Store store({.layers = {layer}, .directory = scratch / "own", .log = recorder.log()});
          if (!store.find(key, program)) return 1;
          return recorder.messages().empty() && store.rejected() == 0 ? 0 : 2;
        }) == 0);
}

TEST_CASE("a directory that cannot be written: one warning, memory only") {
  const Scratch scratch;
  overwrite(scratch / "file", "content");
  fs::create_directory(scratch / "read-only");
  fs::permissions(scratch / "read-only", fs::perms{0555});
  const jit::Program other = sample_program(1);
  for (const char* name : {"file", "file/below/a/file", "read-only", "read-only/below"}) {
    CAPTURE(name);
    CHECK(as_plain_user(name == std::string("read-only") ? scratch / "read-only" : scratch.path(), [&] {
            Recorder recorder;
            Store store({.directory = scratch / name, .log = recorder.log()});
            if (store.find(key, program) || store.put(key, program, cubin) || store.find(key, program)) return 1;
            if (store.put(fixtures::key_of(other), other, cubin)) return 2;
            return recorder.messages().size() == 1 ? 0 : 3;
          }) == 0);
  }
}

TEST_CASE("what a plain user may not read is passed over with one warning, and is not touched") {
  const Scratch scratch;
  const std::string layer = filled(scratch / "layer");
  const std::string own = filled(scratch / "own");
  const std::string shard = fs::path(entry_path(own, key)).parent_path().string();
  for (const std::string& path : {scratch.path(), own, shard, entry_path(own, key)})
    REQUIRE(as_plain_user(path, [] { return 0; }) == 0);  // gives it away, if we are root
  // Finds nothing in `unreadable`, then something in the other directory. The user owns all but `layer`.
  const auto passes_over = [&](const std::string& unreadable, std::vector<std::string> layers) {
    return as_plain_user(own, [&] {
      Recorder recorder;
      Store store({.layers = std::move(layers), .directory = own, .log = recorder.log()});
      if (store.find(key, program).has_value() == (unreadable == own)) return 1;
      if (recorder.messages().size() != 1 || recorder.messages()[0].find(unreadable) == std::string::npos) return 2;
      return recorder.messages()[0].find("Permission denied") != std::string::npos ? 0 : 3;
    });
  };
  SUBCASE("a layer of which others are kept out") {
    if (::geteuid() != 0) {
      MESSAGE("SKIPPED: only root can make a layer of root");
      return;
    }
    CHECK(passes_over(layer, {layer}) == 0);
  }
  SUBCASE("an entry without the right to read it; a new one takes its place") {
    fs::permissions(entry_path(own, key), fs::perms::none);
    CHECK(passes_over(own, {}) == 0);
    CHECK(as_plain_user(own, [&] {
            Store store({.directory = own});
            return store.put(key, program, cubin) && store.find(key, program) ? 0 : 1;
          }) == 0);
  }
  SUBCASE("a shard without the right to look into it") {
    fs::permissions(shard, fs::perms::none);
    CHECK(passes_over(own, {}) == 0);
    fs::permissions(shard, fs::perms{0700});
  }
}

TEST_CASE("two versions of the library share a directory, and each keeps its entries") {
  const Scratch scratch;
  const std::string directory = filled(scratch / "cache");
  // As another version would have written them: with templates of its own, and with a schema of its own.
  const jit::TemplateFile changed[] = {{.name = "online.cuh", .text = "// of another version"}};
  const Key theirs = cache::key_of(program, changed);
  const std::string of_other_templates = entry_path(directory, theirs);
  std::vector<char> bytes = cache::serialize(theirs, program, cubin);
  store_number(bytes, 8 + 4 + 16, cache::digest_of(changed).high);
  store_number(bytes, 8 + 4 + 16 + 8, cache::digest_of(changed).low);
  bytes = resealed(std::move(bytes));
  const std::string of_other_schema = entry_path(directory, {.high = theirs.high, .low = theirs.low + 1});
  for (const std::string& path : {of_other_templates, of_other_schema}) {
    fs::create_directories(fs::path(path).parent_path());
    fs::permissions(fs::path(path).parent_path(), fs::perms{0700});
    overwrite(path, std::string(bytes.begin(), bytes.end()));
    store_number(bytes, 8, cache::schema + 1, 4);
    bytes = resealed(std::move(bytes));
  }
  const auto content = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const std::string before[] = {content(of_other_templates), content(of_other_schema)};
  CHECK(cache::check(of_other_templates).condition == cache::Condition::other_version);
  CHECK(cache::check(of_other_schema).condition == cache::Condition::other_version);

  Recorder recorder;
  Store store({.directory = directory, .log = recorder.log(), .limit = std::int64_t{1} << 20});
  CHECK(store.find(key, program));
  CHECK(store.put(key, program, cubin));
  CHECK(store.put(fixtures::key_of(sample_program(1)), sample_program(1), cubin));
  CHECK(recorder.messages().empty());
  CHECK(store.rejected() == 0);
  CHECK(content(of_other_templates) == before[0]);
  CHECK(content(of_other_schema) == before[1]);

  // Should the other's entry be where this version looks, it is a miss and not used.
  Store confused({.directory = directory, .log = recorder.log()});
  CHECK_FALSE(confused.find(theirs, program));
  REQUIRE(recorder.messages().size() == 1);
  CHECK(recorder.messages()[0].find("other templates") != std::string::npos);
}

TEST_CASE("a moved cache directory still hits") {
  const Scratch scratch;
  filled(scratch / "cache");
  fs::rename(scratch / "cache", scratch / "elsewhere");
  const auto found = Store({.directory = scratch / "elsewhere"}).find(key, program);
  REQUIRE(found);
  CHECK(same(*found, cubin));
}

TEST_CASE("a relative directory stays the same when the working directory changes") {
  const Scratch scratch;
  CHECK(in_child([&] {
          fs::current_path(scratch.path());
          Store store({.layers = {"layer"}, .directory = "cache"});
          fs::current_path("/");
          if (!store.put(key, program, cubin) || !fs::exists(entry_path(scratch / "cache", key))) return 1;
          return store.options().layers[0] == scratch / "layer" ? 0 : 2;
        }) == 0);
}

TEST_CASE("what no reader would accept is not written") {
  const Scratch scratch;
  Recorder recorder;
  Store store({.directory = scratch / "cache", .log = recorder.log()});
  jit::Cubin empty = cubin;
  empty.payload.clear();
  CHECK_FALSE(store.put(key, program, empty));
  CHECK_FALSE(store.put(key, program, empty));
  jit::Cubin huge = cubin;
  huge.payload.resize(std::size_t{cache::max_entry_bytes});
  CHECK_FALSE(store.put(key, program, huge));
  CHECK(files_below(scratch.path()).empty());
  CHECK(recorder.messages().size() == 2);
  CHECK(store.put(key, program, cubin));  // neither is a fault of the directory
}

TEST_CASE("reports are bounded") {
  const Scratch scratch;
  const std::string directory = filled(scratch / "cache");
  Recorder recorder;
  Store store({.directory = directory, .log = recorder.log()});
  for (int i = 0; i < 1000; ++i) {
    const Key damaged{.high = key.high, .low = static_cast<std::uint64_t>(i)};
    overwrite(entry_path(directory, damaged), "damaged");
    CHECK_FALSE(store.find(damaged, program));
  }
  CHECK(store.rejected() == 1000);
  CHECK(recorder.messages().size() == 257);
  CHECK(recorder.messages().back().find("not reported") != std::string::npos);
}

TEST_CASE("a hit in the writable directory renews the file's time, at most once an hour") {
  using std::chrono::minutes;
  const Scratch scratch;
  filled(scratch / "layer");
  filled(scratch / "own");
  const auto age_after_hit = [&](const std::string& name, minutes age, base::FileSystem& files) {
    const std::string path = entry_path(scratch / name, key);
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
    Recorder recorder;
    Store store({.layers = {scratch / "layer"}, .directory = scratch / "own", .log = recorder.log()}, files);
    CHECK(store.find(key, program));
    CHECK(recorder.messages().empty());
    return std::chrono::round<minutes>(fs::file_time_type::clock::now() - fs::last_write_time(path)).count();
  };
  RealFiles real;
  CHECK(age_after_hit("layer", minutes(90), real) == 90);  // a layer is never written to
  fs::remove_all(scratch / "layer");
  CHECK(age_after_hit("own", minutes(50), real) == 50);
  CHECK(age_after_hit("own", minutes(70), real) == 0);
  FaultyFiles read_only(Operation::touch, EROFS);
  CHECK(age_after_hit("own", minutes(70), read_only) == 70);
}

TEST_CASE("a limit is kept after each write by removing the least recently used; none looks at nothing") {
  const Scratch scratch;
  const auto path = [&](int i) { return entry_path(scratch / "cache", fixtures::key_of(sample_program(100 + i))); };
  const auto put = [&](int i, std::optional<std::int64_t> limit, base::FileSystem& files) {
    Recorder recorder;
    Store store({.directory = scratch / "cache", .log = recorder.log(), .limit = limit}, files);
    CHECK(store.put(fixtures::key_of(sample_program(100 + i)), sample_program(100 + i), cubin));
    CHECK(recorder.messages().empty());
  };
  class Listed final : public RealFiles {
   public:
    std::vector<std::string> list(const std::string& directory, std::error_code& error) override {
      ++count;
      return RealFiles::list(directory, error);
    }
    int count = 0;
  } files;
  const auto left = [&] {
    std::string result;
    for (int i = 0; i < 5; ++i)
      if (fs::exists(path(i))) result += std::to_string(i);
    return result;
  };
  for (int i = 0; i < 3; ++i) {
    put(i, std::nullopt, files);
    fs::last_write_time(path(i), fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  CHECK(files.count == 0);
  const auto size = static_cast<std::int64_t>(fs::file_size(path(0)));
  put(3, 4 * size, files);
  CHECK(left() == "0123");
  CHECK(Store({.directory = scratch / "cache"}).find(fixtures::key_of(sample_program(100)), sample_program(100)));
  put(4, 4 * size, files);  // 1 goes, since 0 has just been used
  CHECK(left() == "0234");
  FaultyFiles stuck(Operation::remove, EACCES);
  put(1, 4 * size, stuck);
  CHECK(left() == "01234");
  put(1, 2 * size, files);
  CHECK(left().size() == 2);
  put(1, 0, files);
  CHECK(left().empty());
}
