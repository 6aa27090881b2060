// FileSystem: what it refuses to open, what it creates, and that a failed write leaves nothing.
#include "base/files.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string_view>

#include "cache_fixtures.hpp"

using jitsoftmax::base::file_system;
using jitsoftmax::base::FileSystem;
namespace fs = std::filesystem;

namespace {

std::error_code read_error(const std::string& path, std::int64_t limit = 100) {
  FileSystem::Info info;
  std::error_code error;
  const auto bytes = file_system().read(path, limit, info, error);
  if (error) CHECK(bytes.empty());
  return error;
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file is read whole, with the facts of what was opened") {
  const fixtures::Scratch scratch;
  const std::string path = scratch / "file";
  std::ofstream(path) << "content";
  fs::permissions(path, fs::perms{0640});
  FileSystem::Info info;
  std::error_code error;
  const auto bytes = file_system().read(path, 7, info, error);
  CHECK_FALSE(error);
  CHECK(std::string(bytes.begin(), bytes.end()) == "content");
  CHECK(info.size == 7);
  CHECK(info.owner == ::geteuid());
  CHECK((info.mode & 07777) == 0640);
}

TEST_CASE("only regular files within the limit are opened, and nothing blocks") {
  const fixtures::Scratch scratch;
  std::ofstream(scratch / "file") << "content";
  fs::create_symlink(scratch / "file", scratch / "link");
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  CHECK(read_error(scratch / "file", 6) == std::errc::file_too_large);
  CHECK(read_error(scratch / "link") == std::errc::too_many_symbolic_link_levels);
  CHECK(read_error(scratch / "fifo") == std::errc::invalid_argument);
  CHECK(read_error(scratch.path()) == std::errc::invalid_argument);
  CHECK(read_error("/dev/null") == std::errc::invalid_argument);
  CHECK(read_error(scratch / "none") == std::errc::no_such_file_or_directory);
  CHECK(read_error(scratch / "file/x") == std::errc::not_a_directory);

  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (scratch / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(read_error(scratch / "socket") == std::errc::invalid_argument);
  ::close(socket);
}

TEST_CASE("a directory is told from links to it, with or without a slash at the end") {
  const fixtures::Scratch scratch;
  fs::create_directory(scratch / "directory");
  fs::create_directory_symlink(scratch / "directory", scratch / "link");
  std::ofstream(scratch / "file") << "content";
  std::error_code error;
  (void)file_system().directory_info(scratch / "directory/", error);
  CHECK_FALSE(error);
  (void)file_system().directory_info(scratch / "link", error);
  CHECK(error == std::errc::too_many_symbolic_link_levels);
  (void)file_system().directory_info(scratch / "link/", error);
  CHECK(error == std::errc::too_many_symbolic_link_levels);
  (void)file_system().directory_info(scratch / "file", error);
  CHECK(error == std::errc::not_a_directory);
  (void)file_system().directory_info(scratch / "none", error);
  CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE("missing parents are created for the owner alone") {
  const fixtures::Scratch scratch;
  const mode_t before = ::umask(0);
  std::error_code error;
  file_system().create_directories(scratch / "a/b//c/", error);
  ::umask(before);
  CHECK_FALSE(error);
  for (const char* part : {"a", "a/b", "a/b/c"}) CHECK(mode_of(scratch / part) == 0700);

  file_system().create_directories(scratch / "a/b/c", error);
  CHECK_FALSE(error);
  std::ofstream(scratch / "file") << "content";
  file_system().create_directories(scratch / "file", error);
  CHECK(error == std::errc::not_a_directory);
  file_system().create_directories(scratch / "file/a/b", error);
  CHECK(error == std::errc::not_a_directory);
  fs::create_symlink(scratch / "none", scratch / "dangling");
  file_system().create_directories(scratch / "dangling", error);
  CHECK(error == std::errc::not_a_directory);
  file_system().create_directories("", error);
  CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE("a temporary is new, private and complete") {
  const fixtures::Scratch scratch;
  const std::vector<char> bytes(100'000, 'x');
  const mode_t before = ::umask(0);
  std::error_code error;
  const std::string first = file_system().write_temporary(scratch.path(), bytes, error);
  ::umask(before);
  REQUIRE_FALSE(error);
  const std::string second = file_system().write_temporary(scratch.path(), bytes, error);
  REQUIRE_FALSE(error);
  CHECK(first != second);
  CHECK(mode_of(first) == 0600);
  CHECK(fs::path(first).parent_path() == scratch.path());
  CHECK(fs::path(first).filename().string().starts_with(".tmp-"));
  FileSystem::Info info;
  CHECK(file_system().read(first, 100'000, info, error) == bytes);

  (void)file_system().write_temporary(scratch / "none", bytes, error);
  CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE("a write that fails in the middle leaves no file") {
  const fixtures::Scratch scratch;
  CHECK(fixtures::in_child([&] {
          std::signal(SIGXFSZ, SIG_IGN);  // the limit then is an error of write()
          const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
          std::error_code error;
          const std::string path = file_system().write_temporary(scratch.path(), std::vector<char>(100'000), error);
          if (error != std::errc::file_too_large) return 2;
          return path.empty() ? 0 : 3;
        }) == 0);
  CHECK(fixtures::files_below(scratch.path()).empty());
}

TEST_CASE("a list has the names of a directory and follows no link") {
  const fixtures::Scratch scratch;
  fs::create_directory(scratch / "directory");
  for (const char* name : {"directory/b", "directory/.a", "directory/c"}) std::ofstream(scratch / name) << "x";
  fs::create_directory_symlink(scratch / "directory", scratch / "link");
  std::error_code error;
  CHECK(file_system().list(scratch / "directory", error) == std::vector<std::string>{".a", "b", "c"});
  CHECK_FALSE(error);
  for (const char* name : {"link", "directory/b", "missing"}) {
    CAPTURE(name);
    CHECK(file_system().list(scratch / name, error).empty());
    CHECK(error);
  }
  CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE("the facts of a file are its own, and a touch changes its time alone") {
  const fixtures::Scratch scratch;
  const std::string path = scratch / "file";
  std::ofstream(path) << "content";
  fs::create_symlink(path, scratch / "link");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(48);
  fs::last_write_time(path, long_ago);
  std::error_code error;
  const FileSystem::Info before = file_system().file_info(path, error);
  REQUIRE_FALSE(error);
  CHECK(before.size == 7);
  CHECK(before.owner == ::geteuid());

  file_system().touch(scratch / "link", error);
  CHECK(file_system().file_info(path, error).modified == before.modified);
  file_system().touch(path, error);
  CHECK_FALSE(error);
  const FileSystem::Info after = file_system().file_info(path, error);
  CHECK(after.modified - before.modified >= 48 * 3600 - 5);
  CHECK(after.modified - before.modified <= 48 * 3600 + 60);
  CHECK(after.size == 7);

  (void)file_system().file_info(scratch / "link", error);
  CHECK(error == std::errc::too_many_symbolic_link_levels);
  (void)file_system().file_info(scratch.path(), error);
  CHECK(error == std::errc::invalid_argument);
  file_system().touch(scratch / "missing", error);
  CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE("a temporary is known by its name") {
  const fixtures::Scratch scratch;
  std::error_code error;
  const std::string path = file_system().write_temporary(scratch.path(), std::string_view("x"), error);
  REQUIRE_FALSE(error);
  CHECK(jitsoftmax::base::is_temporary(fs::path(path).filename().string()));
  for (const char* name : {"", ".tmp-", ".tmp-0123456789abcde", ".tmp-0123456789abcdeX", "tmp-0123456789abcdef0"})
    CHECK_FALSE(jitsoftmax::base::is_temporary(name));
}
