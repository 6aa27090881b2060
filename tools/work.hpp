// Work: softmax of one whole array in host memory, along one of its axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <jitsoftmax/problem.hpp>
#include <vector>

namespace jitsoftmax::tools {

// A row-major array seen around the axis of its rows: element j of row (o, i) is at
// (o * cols + j) * inner + i.
struct Split {
  std::int64_t outer = 0;
  std::int64_t cols = 0;
  std::int64_t inner = 1;
};

// The dimension that `axis` means: it counts from the end where it is negative, as in NumPy. Throws
// Failure where the array has no such axis.
[[nodiscard]] std::size_t axis_of(const std::vector<std::int64_t>& shape, std::int64_t axis);

// No dimension is 0, and the product of all fits.
[[nodiscard]] Split split(const std::vector<std::int64_t>& shape, std::size_t axis) noexcept;

struct Work {
  Problem problem;
  Split split;
  float scale = 1;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

}  // namespace jitsoftmax::tools
