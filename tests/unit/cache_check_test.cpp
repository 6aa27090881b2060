// What is in a cache directory is found, judged as a load would judge it, and left alone.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cache/check.hpp"
#include "cache/store.hpp"
#include "cache/walk.hpp"
#include "cache_fixtures.hpp"
#include "cache_sealed.hpp"
#include "faulty_files.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::check;
using cache::Condition;
using cache::entry_path;
using cache::Key;
using cache::Store;
using cache::walk;
using jitsoftmax::testing::resealed;
namespace fs = std::filesystem;

const jit::Program program = sample_program();
const Key key = fixtures::key_of(program);

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

struct Filled {
  Scratch scratch;
  std::string directory = scratch / "cache";
  std::string path = entry_path(directory, key);
  Filled() { REQUIRE(Store({.directory = directory}).put(key, program, sample_cubin())); }
};

}  // namespace

TEST_CASE("a walk sees entries and temporaries, and nothing else") {
  const Filled filled;
  const std::string shard = fs::path(filled.path).parent_path().string();
  const std::string temporary = shard + "/.tmp-0123456789abcdef";
  overwrite(temporary, "half an entry");
  for (const char* name : {"notes.txt", ".tmp-1", ".tmp-0123456789abcdeg", "0123.jsc", "x.jsc"})
    overwrite(shard + "/" + name, "precious");
  overwrite(shard + "/" + std::string(29, 'a') + "G.jsc", "precious");
  fs::create_directories(filled.directory + "/records");
  overwrite(filled.directory + "/records/" + std::string(30, 'a') + ".jsc", "precious");
  const std::string of_a_record = filled.directory + "/records/.tmp-0123456789abcdef";
  overwrite(of_a_record, "half a record");
  overwrite(filled.directory + "/" + std::string(30, 'a') + ".jsc", "precious");
  const auto contents = walk(filled.directory);
  CHECK(contents.entries == std::vector<std::string>{filled.path});
  CHECK(contents.temporaries == std::vector<std::string>{temporary, of_a_record});
  CHECK(contents.faults.empty());

  const auto nothing = walk(filled.scratch / "missing");
  CHECK(nothing.entries.empty());
  CHECK(nothing.faults.empty());
}

TEST_CASE("a walk names what it does not look into, and why") {
  const Filled filled;
  const std::string shard = fs::path(filled.path).parent_path().string();
  const auto refuses = [&](const std::string& path, const std::string& reason) {
    const auto contents = walk(filled.directory);
    CHECK(contents.entries.empty());
    REQUIRE(contents.faults.size() == 1);
    CHECK(contents.faults[0].path == path);
    CHECK(contents.faults[0].reason.find(reason) != std::string::npos);
  };
  SUBCASE("a shard of everybody") {
    fs::permissions(shard, fs::perms{0777});
    refuses(shard, "writable by everybody");
  }
  SUBCASE("a directory of the group") {
    fs::permissions(filled.directory, fs::perms{0770});
    refuses(filled.directory, "writable by its group");
  }
  SUBCASE("a linked shard") {
    fs::rename(shard, filled.scratch / "elsewhere");
    fs::create_directory_symlink(filled.scratch / "elsewhere", shard);
    refuses(shard, "symbolic link");
  }
  SUBCASE("storage that fails") {
    FaultyFiles files(Operation::list, EIO);
    const auto contents = walk(filled.directory, files);
    REQUIRE(contents.faults.size() == 1);
    CHECK(contents.faults[0].reason == "cannot be listed: Input/output error");
    FaultyFiles vanished(Operation::list, ENOENT);
    CHECK(walk(filled.directory, vanished).faults.empty());
  }
}

TEST_CASE("an entry says what it is") {
  const Filled filled;
  const auto checked = check(filled.path);
  REQUIRE(checked.condition == Condition::valid);
  REQUIRE(checked.entry);
  CHECK(checked.entry->program.name == program.name);
  CHECK(checked.entry->cubin.compiler == "13.0");
  CHECK(checked.info.size == static_cast<std::int64_t>(fs::file_size(filled.path)));
  CHECK(checked.reason.empty());
}

TEST_CASE("damage at any byte is found, and nothing is deleted") {
  const Filled filled;
  const std::string whole = bytes_of(filled.path);
  for (std::size_t i = 0; i < whole.size(); i += 7) {
    CAPTURE(i);
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    overwrite(filled.path, flipped);
    CHECK(check(filled.path).condition == Condition::damaged);
    overwrite(filled.path, whole.substr(0, i));
    CHECK(check(filled.path).condition == Condition::damaged);
    CHECK(bytes_of(filled.path) == whole.substr(0, i));
  }
}

TEST_CASE("an entry under another name, or with another program than its key's, is damaged") {
  const Filled filled;
  const Key other = fixtures::key_of(sample_program(1));
  const std::string elsewhere = entry_path(filled.directory, other);
  fs::create_directories(fs::path(elsewhere).parent_path());
  fs::copy_file(filled.path, elsewhere);
  const auto misnamed = check(elsewhere);
  CHECK(misnamed.condition == Condition::damaged);
  CHECK(misnamed.reason == "is the entry of another key, " + key.hex());

  std::string bytes = bytes_of(filled.path);
  const std::size_t name = bytes.find("registers<");
  REQUIRE(name != std::string::npos);
  bytes[name] = 'R';
  overwrite(filled.path, resealed(bytes));
  const auto forged = check(filled.path);
  CHECK(forged.condition == Condition::damaged);
  CHECK(forged.reason.find("another program") != std::string::npos);
}

TEST_CASE("an entry of another version is no damage") {
  const Filled filled;
  const std::string whole = bytes_of(filled.path);
  std::string schema = whole;
  ++schema[8];  // behind the magic
  overwrite(filled.path, resealed(schema));
  CHECK(check(filled.path).condition == Condition::other_version);
  CHECK_FALSE(check(filled.path).entry);

  std::string templates = whole;
  templates[8 + 4 + 16] = static_cast<char>(templates[8 + 4 + 16] ^ 1);
  overwrite(filled.path, resealed(templates));
  const auto checked = check(filled.path);
  CHECK(checked.condition == Condition::other_version);
  REQUIRE(checked.entry);
  CHECK(checked.entry->program.name == program.name);
}

TEST_CASE("what a load would refuse is refused; an I/O error is neither damage nor validity") {
  const Filled filled;
  SUBCASE("others may write to it") {
    fs::permissions(filled.path, fs::perms{0622});
    CHECK(check(filled.path).condition == Condition::refused);
    CHECK(check(filled.path).reason.find("chmod go-w") != std::string::npos);
  }
  SUBCASE("a symbolic link") {
    fs::rename(filled.path, filled.scratch / "target");
    fs::create_symlink(filled.scratch / "target", filled.path);
    CHECK(check(filled.path).condition == Condition::refused);
    CHECK(check(filled.path).reason == "is a symbolic link");
  }
  SUBCASE("a fifo") {
    fs::remove(filled.path);
    REQUIRE(::mkfifo(filled.path.c_str(), 0600) == 0);
    CHECK(check(filled.path).condition == Condition::refused);
  }
  SUBCASE("another owner's") {
    if (::geteuid() != 0) return;  // only root can give files away
    REQUIRE(::chown(filled.path.c_str(), nobody, nobody) == 0);
    CHECK(check(filled.path).condition == Condition::refused);
  }
  SUBCASE("an I/O error") {
    FaultyFiles files(Operation::read, EIO);
    CHECK(check(filled.path, files).condition == Condition::unreadable);
    CHECK(check(filled.path, files).reason == "cannot be read: Input/output error");
  }
  SUBCASE("gone") {
    fs::remove(filled.path);
    CHECK(check(filled.path).condition == Condition::gone);
  }
}
