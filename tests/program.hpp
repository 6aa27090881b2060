// Runs the jitsoftmax program as a child process and collects what it says.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "temporary_directory.hpp"

namespace jitsoftmax::testing {

struct Outcome {
  int code = -1;  // 128 + signal where one ended it
  std::string out;
  std::string err;
};

// A started program. The environment is this process's with the cache in `directory` and no GPU to
// be seen, then `environment`; a value that is empty is unset.
class Program {
 public:
  Program(const TemporaryDirectory& directory, const std::vector<std::string>& arguments,
          std::map<std::string, std::string> environment = {}, rlim_t file_size_limit = RLIM_INFINITY)
      : out_(directory / "stdout.txt"), err_(directory / "stderr.txt") {
    environment.try_emplace("JITSOFTMAX_CACHE_DIR", directory / "cache");
    environment.try_emplace("CUDA_VISIBLE_DEVICES", "-1");
    for (const char* name : {"JITSOFTMAX_CACHE_LAYERS", "JITSOFTMAX_ON_MISS", "JITSOFTMAX_DEVICE", "JITSOFTMAX_LOG"}) {
      environment.try_emplace(name, "");
    }
    std::vector<std::string> all{JITSOFTMAX_PROGRAM};
    all.insert(all.end(), arguments.begin(), arguments.end());
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("fork failed");
    if (child_ == 0) become(all, environment, file_size_limit);
  }
  ~Program() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const { ::kill(child_, number); }
  [[nodiscard]] pid_t id() const { return child_; }

  Outcome wait() {
    int status = 0;
    if (::waitpid(std::exchange(child_, -1), &status, 0) < 0) throw std::runtime_error("waitpid failed");
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(out_), read_file(err_)};
  }

 private:
  [[noreturn]] void become(std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
                           rlim_t file_size_limit) const {
    for (const auto& [name, value] : environment) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    ::dup2(::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    const rlimit limit{file_size_limit, file_size_limit};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }

  std::string out_;
  std::string err_;
  pid_t child_ = -1;
};

inline bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace jitsoftmax::testing
