#include "work.hpp"

#include <spdlog/fmt/fmt.h>

#include "exit_code.hpp"

namespace jitsoftmax::tools {

std::size_t axis_of(const std::vector<std::int64_t>& shape, std::int64_t axis) {
  const auto dimensions = static_cast<std::int64_t>(shape.size());
  if (axis < -dimensions || axis >= dimensions) {
    throw Failure(exit_code::usage, fmt::format("--axis {}: the array has {} dimension{}, so it is from {} to {}", axis,
                                                dimensions, dimensions == 1 ? "" : "s", -dimensions, dimensions - 1));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + dimensions : axis);
}

Split split(const std::vector<std::int64_t>& shape, std::size_t axis) noexcept {
  Split result{1, shape[axis], 1};
  for (std::size_t i = 0; i < axis; ++i) result.outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) result.inner *= shape[i];
  return result;
}

}  // namespace jitsoftmax::tools
