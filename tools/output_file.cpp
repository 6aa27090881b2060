#include "output_file.hpp"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "exit_code.hpp"
#include "file_descriptor.hpp"
#include "interrupt.hpp"

namespace jitsoftmax::tools {
namespace {

[[noreturn]] void fail(const std::string& path, int error, const char* advice) {
  throw Failure(exit_code::incomplete,
                fmt::format("cannot write '{}': {}: {}", path, std::generic_category().message(error), advice));
}

// Removes the temporary unless it has become the target.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  void keep() noexcept { path_.clear(); }

 private:
  std::string path_;
};

std::string temporary_path(const std::string& target) {
  std::random_device random;
  const std::filesystem::path path(target);
  return path.parent_path() / fmt::format(".jitsoftmax-{:08x}{:08x}.tmp", random(), random());
}

void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  constexpr std::size_t block = std::size_t{16} << 20;  // so that Ctrl-C is heard
  while (!bytes.empty()) {
    stop_if_interrupted();
    const ssize_t written = ::write(descriptor, bytes.data(), std::min(bytes.size(), block));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(path, errno, "nothing was written; free some space or choose another place");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  if (error) fail(path, error.value(), "choose another place for the output");
  target_ = target.string();

  struct stat info = {};
  if (::stat(target_.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) {
      throw Failure(exit_code::usage,
                    fmt::format("'{}' exists and is not a regular file: choose another place for the output", path));
    }
    exists_ = true;
    mode_ = info.st_mode & 07777U;
  }
  if (::access(target.parent_path().c_str(), W_OK | X_OK) != 0) {
    fail(path, errno, "the output needs a directory that exists and can be written to");
  }
}

void OutputFile::write(std::initializer_list<std::span<const std::byte>> pieces) const {
  constexpr const char* advice = "nothing was written; choose another place for the output";
  const std::string path = temporary_path(target_);
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) fail(path_, errno, advice);
  Temporary temporary(path);

  for (const std::span<const std::byte> piece : pieces) write_all(file.get(), piece, path_);
  if (exists_ && ::fchmod(file.get(), mode_) != 0) fail(path_, errno, advice);
  if (::fsync(file.get()) != 0 || !file.close()) fail(path_, errno, advice);
  stop_if_interrupted();
  if (std::rename(path.c_str(), target_.c_str()) != 0) fail(path_, errno, advice);
  temporary.keep();
}

}  // namespace jitsoftmax::tools
