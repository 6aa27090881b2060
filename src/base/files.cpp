// FileSystem over POSIX calls.
#include "base/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

namespace jitsoftmax::base {
namespace {

std::error_code error_of(int number) { return {number, std::generic_category()}; }
std::error_code last_error() { return error_of(errno); }

// A signal handler of the host program may interrupt any call on a slow (network) file system.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return number_; }
  void release() noexcept { number_ = -1; }  // to whoever closes it now

  // Network file systems report a failed write here at the latest. EINTR is none: the descriptor
  // is closed and what was written has been fsynced.
  void close(std::error_code& error) {
    if (::close(std::exchange(number_, -1)) != 0 && errno != EINTR) error = last_error();
  }

 private:
  int number_;
};

constexpr std::string_view temporary_prefix = ".tmp-";
constexpr std::size_t temporary_digits = 16;

// lstat and mkdir would follow a symbolic link that is spelled with a slash at its end.
std::string without_trailing_slashes(const std::string& path) {
  const std::size_t last = path.find_last_not_of('/');
  return last == std::string::npos ? path.substr(0, 1) : path.substr(0, last + 1);
}

FileSystem::Info info_of(const struct stat& status) {
  return {.mode = status.st_mode, .owner = status.st_uid, .size = status.st_size, .modified = status.st_mtime};
}

// mkdir of the last directory first: its parents are touched only where they are missing, since
// they may well be unreadable or on read-only storage.
void make_directory(const std::string& path, std::error_code& error) {
  constexpr mode_t only_the_owner = 0700;
  if (::mkdir(path.c_str(), only_the_owner) == 0) return;
  if (errno == ENOENT) {
    const std::size_t slash = path.find_last_of('/');
    if (slash == std::string::npos || slash == 0) {
      error = error_of(ENOENT);
      return;
    }
    make_directory(without_trailing_slashes(path.substr(0, slash)), error);
    if (error || ::mkdir(path.c_str(), only_the_owner) == 0) return;
  }
  if (errno != EEXIST) {
    error = last_error();
    return;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) error = error_of(ENOTDIR);
}

void write_all(int descriptor, std::span<const char> bytes, std::error_code& error) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor, bytes.data(), bytes.size()); });
    if (written <= 0) {
      error = written == 0 ? error_of(EIO) : last_error();
      return;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

// Nothing but a regular file, without blocking.
Descriptor open_regular(const std::string& path, FileSystem::Info& info, std::error_code& error) {
  error.clear();
  // O_NONBLOCK: a fifo without a writer would block the open.
  Descriptor file(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }));
  struct stat status {};
  if (file.get() < 0) {
    error = errno == ENXIO ? error_of(EINVAL) : last_error();  // ENXIO: a socket
  } else if (::fstat(file.get(), &status) != 0) {
    error = last_error();
  } else {
    info = info_of(status);
    if (!S_ISREG(status.st_mode)) error = error_of(EINVAL);
  }
  return file;
}

// The next bytes, fewer where the file ends (it may have been truncated meanwhile), none after an error.
std::vector<char> read_up_to(int descriptor, std::size_t count, std::error_code& error) {
  std::vector<char> bytes(count);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = uninterrupted([&] { return ::read(descriptor, bytes.data() + filled, bytes.size() - filled); });
    if (got < 0) {
      error = last_error();
      return {};
    }
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

class PosixFiles final : public FileSystem {
 public:
  std::vector<char> read(const std::string& path, std::int64_t limit, Info& info, std::error_code& error) override {
    const Descriptor file = open_regular(path, info, error);
    if (!error && info.size > limit) error = error_of(EFBIG);
    if (error) return {};
    return read_up_to(file.get(), static_cast<std::size_t>(info.size), error);
  }

  std::vector<char> read_start(const std::string& path, std::size_t count, Info& info,
                               std::error_code& error) override {
    const Descriptor file = open_regular(path, info, error);
    if (error) return {};
    return read_up_to(file.get(), std::min(count, static_cast<std::size_t>(info.size)), error);
  }

  Info directory_info(const std::string& path, std::error_code& error) override {
    error.clear();
    struct stat status {};
    if (::lstat(without_trailing_slashes(path).c_str(), &status) != 0) {
      error = last_error();
    } else if (S_ISLNK(status.st_mode)) {
      error = error_of(ELOOP);
    } else if (!S_ISDIR(status.st_mode)) {
      error = error_of(ENOTDIR);
    }
    return info_of(status);
  }

  Info file_info(const std::string& path, std::error_code& error) override {
    error.clear();
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      error = last_error();
    } else if (S_ISLNK(status.st_mode)) {
      error = error_of(ELOOP);
    } else if (!S_ISREG(status.st_mode)) {
      error = error_of(EINVAL);
    }
    return info_of(status);
  }

  std::vector<std::string> list(const std::string& directory, std::error_code& error) override {
    error.clear();
    Descriptor opened(
        uninterrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
    if (opened.get() < 0) {
      error = last_error();
      return {};
    }
    struct Close {
      void operator()(DIR* stream) const noexcept { ::closedir(stream); }
    };
    const std::unique_ptr<DIR, Close> stream(::fdopendir(opened.get()));
    if (!stream) {
      error = last_error();
      return {};
    }
    opened.release();  // the stream closes it

    std::vector<std::string> names;
    errno = 0;                                              // the only way to tell an error from the end
    while (const dirent* item = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of its own
      const std::string_view name = item->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) {
      error = last_error();
      return {};
    }
    std::ranges::sort(names);
    return names;
  }

  void touch(const std::string& path, std::error_code& error) override {
    error.clear();
    if (::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0) error = last_error();
  }

  void create_directories(const std::string& path, std::error_code& error) override {
    error.clear();
    make_directory(without_trailing_slashes(path), error);
  }

  std::string write_temporary(const std::string& directory, std::span<const char> bytes,
                              std::error_code& error) override {
    error.clear();
    std::uint64_t random = 0;
    if (uninterrupted([&] { return ::getrandom(&random, sizeof random, 0); }) != sizeof random) {
      error = last_error();
      return {};
    }
    char digits[temporary_digits + 1];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(random));
    std::string path = directory + '/' + std::string(temporary_prefix) + digits;

    Descriptor file(uninterrupted(
        [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600); }));
    if (file.get() < 0) {
      error = last_error();
      return {};
    }
    write_all(file.get(), bytes, error);
    // Without it a power failure may keep the rename and lose the bytes.
    if (!error && uninterrupted([&] { return ::fsync(file.get()); }) != 0) error = last_error();
    std::error_code close_error;
    file.close(close_error);
    if (!error) error = close_error;
    if (error) {
      ::unlink(path.c_str());
      return {};
    }
    return path;
  }

  void rename(const std::string& from, const std::string& to, std::error_code& error) override {
    error.clear();
    if (::rename(from.c_str(), to.c_str()) != 0) error = last_error();
  }

  void remove(const std::string& path, std::error_code& error) override {
    error.clear();
    if (::unlink(path.c_str()) != 0) error = last_error();
  }
};

}  // namespace

bool is_temporary(std::string_view name) noexcept {
  return name.size() == temporary_prefix.size() + temporary_digits && name.starts_with(temporary_prefix) &&
         name.find_first_not_of("0123456789abcdef", temporary_prefix.size()) == std::string_view::npos;
}

FileSystem& file_system() noexcept {
  static PosixFiles files;
  return files;
}

}  // namespace jitsoftmax::base
