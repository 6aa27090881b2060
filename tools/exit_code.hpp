// The program's exit codes, and which of them an error stands for.
#pragma once

#include <jitsoftmax/error.hpp>
#include <stdexcept>
#include <string>

namespace jitsoftmax::tools {

namespace exit_code {
inline constexpr int done = 0;
inline constexpr int incomplete = 1;   // some items failed, or a result could not be written
inline constexpr int usage = 2;        // the command line, or a file that it names, makes no sense
inline constexpr int no_compiler = 3;  // no NVRTC where it is needed
inline constexpr int no_cache = 4;     // the cache cannot be used where it is required
inline constexpr int no_gpu = 5;       // no driver or no GPU where it is needed
inline constexpr int wrong = 6;        // a result is wrong, or slower than it is allowed to be
inline constexpr int signalled = 128;  // plus the number of the signal: 130 for Ctrl-C
}  // namespace exit_code

[[nodiscard]] constexpr int exit_code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unknown_arch:
      return exit_code::usage;
    case ErrorCode::no_driver:
    case ErrorCode::no_context:
      return exit_code::no_gpu;
    case ErrorCode::no_compiler:
      return exit_code::no_compiler;
    case ErrorCode::not_cached:
    case ErrorCode::io_error:  // the library's files are those of its cache
      return exit_code::no_cache;
    case ErrorCode::compile_failed:
    case ErrorCode::driver_error:
    case ErrorCode::capturing:
    case ErrorCode::out_of_memory:
    case ErrorCode::internal:
    case ErrorCode::cancelled:
      break;
  }
  return exit_code::incomplete;
}

// What the program itself cannot do, with the exit code for it.
class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace jitsoftmax::tools
