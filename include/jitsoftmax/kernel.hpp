/// @file
/// Kernel: a handle to the code for one problem, ready to launch. What a hot loop keeps.
///
/// Cheap to copy, immutable, usable from any number of threads at once. It shares ownership of the
/// loaded code and may outlive the engine that made it. As with any code on a GPU, the last owner (a Kernel
/// or the engine) stays until what was launched has ended, and as long as a graph that captured a launch.
#pragma once

#include <jitsoftmax/export.h>

#include <cstdint>
#include <jitsoftmax/problem.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct CUstream_st;

namespace jitsoftmax {

/// A cudaStream_t or a CUstream passes without a cast; null is the legacy default stream.
using Stream = CUstream_st*;

/// Who chose a specialization.
enum class Origin : std::uint8_t {
  built_in,  ///< the library's rules
  variant,   ///< Options::variant
  record,    ///< a tuning record (Engine::autotune), other than the library would
};

class Executable;  // internal: the loaded code

/// The code for one problem, ready to launch.
class JITSOFTMAX_API Kernel {
 public:
  Kernel() = default;  ///< holds nothing: launch() throws invalid_argument
  /// Internal: what Engine::prepare makes.
  explicit Kernel(std::shared_ptr<const Executable> executable) noexcept : executable_(std::move(executable)) {}

  /// Computes softmax over `rows.count` rows, ordered on `stream` (for a host engine: before it
  /// returns, and `stream` is ignored). Never compiles, locks or allocates. Throws Error:
  /// invalid_argument for sizes, strides or pointers that do not fit the problem (nothing is
  /// launched then), no_context, or driver_error if the driver refuses the launch.
  void launch(const Rows& rows, Stream stream = nullptr) const;

  /// The canonical spelling of every specialization of the bundle, for people to read.
  [[nodiscard]] std::vector<std::string> specializations() const;

  /// Who chose them, one for each.
  [[nodiscard]] std::vector<Origin> origins() const;

  /// The spelling of the specialization that a launch of these rows runs. Throws invalid_argument, as
  /// launch() does.
  [[nodiscard]] std::string specialization_for(const Rows& rows) const;

  /// Whether there is something to launch.
  [[nodiscard]] explicit operator bool() const noexcept { return executable_ != nullptr; }

 private:
  std::shared_ptr<const Executable> executable_;
};

}  // namespace jitsoftmax
