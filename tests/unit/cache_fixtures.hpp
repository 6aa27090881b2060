// What the cache's tests share: a program and its cubin, a scratch directory, a log that remembers,
// and child processes (as another user, since root passes every permission check).
#pragma once

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/entry.hpp"
#include "cache/key.hpp"
#include "jit/cubin.hpp"
#include "jit/source.hpp"

namespace fixtures {

using namespace jitsoftmax;  // NOLINT(google-build-using-namespace)

inline jit::Program sample_program(int cols = 4096) {
  return {.text = "#include \"softmax_registers.cuh\"\n",
          .name = "registers<Config{.threads=512},Static<" + std::to_string(cols) + ">,float,float,Softmax>",
          .arch = {9, 0, 'a'},
          .options = {"--std=c++20", "--gpu-architecture=sm_90a"}};
}

inline jit::Cubin sample_cubin(std::size_t payload_bytes = 200) {
  jit::Cubin cubin{.kind = jit::PayloadKind::cubin,
                   .payload = {'\x7f', 'E', 'L', 'F'},
                   .kernel = "_ZN9registersE",
                   .compiler = "13.0",
                   .resources = {.registers = 40, .stack_bytes = 8, .spill_bytes = 4, .shared_bytes = 128}};
  while (cubin.payload.size() < payload_bytes) cubin.payload.push_back(static_cast<char>(cubin.payload.size() * 7));
  return cubin;
}

inline cache::Key key_of(const jit::Program& program) { return cache::key_of(program, jit::templates()); }

inline bool same(const jit::Cubin& a, const jit::Cubin& b) {
  return a.kind == b.kind && a.payload == b.payload && a.kernel == b.kernel && a.compiler == b.compiler &&
         a.resources.registers == b.resources.registers && a.resources.stack_bytes == b.resources.stack_bytes &&
         a.resources.spill_bytes == b.resources.spill_bytes && a.resources.shared_bytes == b.resources.shared_bytes;
}

// Removed with all that it holds.
class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "jitsoftmax-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

class Recorder {
 public:
  [[nodiscard]] Log log() {
    return [this](LogLevel, const std::string& message) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
    };
  }
  [[nodiscard]] std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

constexpr uid_t nobody = 65534;

// Runs `body` in a forked child and returns what it returns (0: as it should be); 255: it threw.
inline pid_t start_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 255;
    try {
      result = body();
    } catch (...) {
    }
    ::_exit(result);
  }
  return child;
}

// The child's exit status; 1000 + the signal that ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline int in_child(const std::function<int()>& body) { return wait_for(start_child(body)); }

// As in_child(), but as a user whom permissions bind: root becomes nobody and owns `directory`.
inline int as_plain_user(const std::string& directory, const std::function<int()>& body) {
  const bool root = ::geteuid() == 0;
  if (root && ::chown(directory.c_str(), nobody, nobody) != 0) return -1;
  return in_child([&] {
    if (root && (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
                 ::setresuid(nobody, nobody, nobody) != 0))
      return 254;
    return body();
  });
}

inline std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> paths;
  if (!std::filesystem::exists(directory)) return paths;
  for (const auto& item : std::filesystem::recursive_directory_iterator(directory))
    if (!item.is_directory()) paths.push_back(item.path().string());
  return paths;
}

}  // namespace fixtures
