/// @file
/// Errors: what the library throws, and the codes that the C API returns for the same conditions.
///
/// Every message says what was asked, what happened and what to do about it.
#pragma once

#include <jitsoftmax/export.h>

#include <stdexcept>
#include <string>

namespace jitsoftmax {

/// Values are part of the C API (jitsoftmax.h) and never change meaning.
enum class ErrorCode : int {
  invalid_argument = 1,  ///< a size, stride, pointer, type or option that cannot be served
  no_driver = 2,         ///< libcuda is missing, or finds no device
  no_context = 3,        ///< Device::current and the calling thread has no current context
  no_compiler = 4,       ///< libnvrtc (or its builtins) cannot be used and a kernel has to be compiled
  unknown_arch = 5,      ///< this NVRTC cannot compile for the architecture
  compile_failed = 6,    ///< NVRTC refused the program: a fault in the library or its installation
  not_cached = 7,        ///< OnMiss::fail and the kernel is in no cache layer
  driver_error = 8,      ///< the driver reported an error for this call
  capturing = 9,         ///< the stream is being captured and the kernel is not prepared
  out_of_memory = 10,    ///< host or device memory is exhausted
  io_error = 11,         ///< a file that the caller named cannot be read or written
  internal = 12,         ///< a broken invariant: please report
  cancelled = 13,        ///< Engine::prepare_async: the engine was destroyed, or the process forked, first
};

/// The one exception that the library throws, besides std::bad_alloc.
class JITSOFTMAX_API Error : public std::runtime_error {
 public:
  /// `message` is for people.
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// What kind of error.
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace jitsoftmax
