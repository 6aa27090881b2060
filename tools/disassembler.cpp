#include "disassembler.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/environment.hpp"
#include "exit_code.hpp"
#include "file_descriptor.hpp"

// NOLINTNEXTLINE(readability-redundant-declaration): POSIX leaves it to the program to declare it
extern char** environ;

namespace jitsoftmax::tools {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw Failure(exit_code::incomplete, fmt::format("{}: {}", what, std::generic_category().message(error)));
}

std::vector<std::string> folders() {
  std::vector<std::string> result;
  std::istringstream path(base::environment("PATH").value_or(""));
  for (std::string folder; std::getline(path, folder, ':');) {
    if (!folder.empty()) result.push_back(folder);
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const auto toolkit = base::environment(name)) result.push_back(*toolkit + "/bin");
  }
  result.emplace_back("/usr/local/cuda/bin");
  return result;
}

// A file that is gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::vector<char>& content)
      : path_(base::environment("TMPDIR").value_or("/tmp") + "/jitsoftmax-XXXXXX"),
        file_(::mkostemp(path_.data(), O_CLOEXEC)) {
    if (!file_.is_open()) fail("a temporary file, " + path_ + ", cannot be made", errno);
    const char* from = content.data();
    for (std::size_t left = content.size(); left > 0;) {
      const ssize_t written = ::write(file_.get(), from, left);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        ::unlink(path_.c_str());
        fail("'" + path_ + "' cannot be written", error);
      }
      from += written;
      left -= static_cast<std::size_t>(written);
    }
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  FileDescriptor file_;
};

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void redirect(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::string read_all(const FileDescriptor& file) {
  std::string text;
  std::array<char, 1 << 16> part{};
  for (;;) {
    const ssize_t count = ::read(file.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

// What a program says, on either stream. Throws Failure unless it ends with 0.
std::string output_of(std::vector<std::string> command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("a pipe cannot be made", errno);
  const FileDescriptor read(ends[0]);
  FileDescriptor write(ends[1]);
  FileActions actions;
  actions.redirect(write.get(), STDOUT_FILENO);
  actions.redirect(write.get(), STDERR_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, command[0].c_str(), actions.get(), nullptr, arguments.data(), environ);
  if (error != 0) fail("'" + command[0] + "' cannot be started", error);
  write.close();
  std::string text = read_all(read);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("waiting for '" + command[0] + "'", errno);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Failure(exit_code::incomplete, fmt::format("'{}' failed: {}", fmt::join(command, " "), text));
  }
  return text;
}

}  // namespace

Disassembler::Disassembler() {
  const std::vector<std::string> places = folders();
  for (const char* name : {"nvdisasm", "cuobjdump"}) {
    for (const std::string& folder : places) {
      program_ = folder + "/" + name;
      if (::access(program_.c_str(), X_OK) == 0) return;
    }
  }
  throw Failure(exit_code::incomplete,
                fmt::format("SASS needs nvdisasm or cuobjdump, and neither is in {}. Install the package "
                            "nvidia-cuda-toolkit (Debian, Ubuntu) or cuda-nvdisasm-13-0 (NVIDIA's apt repository), or "
                            "set CUDA_HOME to a toolkit; --ptx needs none of them",
                            fmt::join(places, ", ")));
}

std::string Disassembler::operator()(const std::vector<char>& cubin) const {
  const TemporaryFile file(cubin);
  return output_of({program_, program_.ends_with("cuobjdump") ? "-sass" : "-c", file.path()});
}

}  // namespace jitsoftmax::tools
