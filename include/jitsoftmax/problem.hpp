/// @file
/// Problem and Rows: what a kernel is specialized for, and what one launch works on. Plain values.
#pragma once

#include <cstdint>

namespace jitsoftmax {

/// Element types.
enum class DType : std::uint8_t {
  f16,   ///< IEEE binary16
  bf16,  ///< bfloat16
  f32,   ///< float
  f64,   ///< double
};

/// What is computed of a row x.
enum class Op : std::uint8_t {
  softmax,      ///< exp(x - m) / d      with m = max(x), d = sum(exp(x - m)) over a row
  log_softmax,  ///< (x - m) - log(d)
};

/// How the elements of a row lie in memory.
enum class Layout : std::uint8_t {
  contiguous,  ///< the elements of a row are neighbours
  strided,     ///< softmax along a dimension that is not the last: they are Rows::inner elements apart
};

/// What kernels are specialized for. It never holds a number of rows or a pointer: a new number of
/// rows never compiles anything.
struct Problem {
  std::int64_t cols = 0;               ///< N, the length of a row in elements; 0 is allowed and does nothing
  DType in = DType::f32;               ///< equal to `out`, or f16/bf16 on one side and f32 on the other
  DType out = DType::f32;              ///< of the result
  Op op = Op::softmax;                 ///< what is computed
  Layout layout = Layout::contiguous;  ///< of input and output

  /// Whether all members are equal.
  friend constexpr bool operator==(const Problem& a, const Problem& b) noexcept {
    return a.cols == b.cols && a.in == b.in && a.out == b.out && a.op == b.op && a.layout == b.layout;
  }
  /// Whether any differs.
  friend constexpr bool operator!=(const Problem& a, const Problem& b) noexcept { return !(a == b); }
};

/// One launch. Row r, 0 <= r < count, has its element j at
///
///     (r / inner) * stride + j * inner + (r % inner)
///
/// so that a contiguous row (inner == 1) is at r * stride + j, and a dimension in the middle of a
/// tensor (outer, cols, inner) has count == outer * inner and stride == cols * inner.
///
/// Strides are counted in elements; 0 stands for "packed", which is cols * inner. A smaller stride
/// is an error, a larger one leaves the gap untouched. `in` and `out` are aligned to their element
/// type and may be the same buffer with the same stride and element size; any other overlap is an
/// error. `count` == 0 does nothing and allows null pointers.
struct Rows {
  void* out = nullptr;          ///< device memory; host memory for Device::host
  const void* in = nullptr;     ///< likewise
  std::int64_t count = 0;       ///< M
  std::int64_t out_stride = 0;  ///< elements from one row, or block of rows, to the next
  std::int64_t in_stride = 0;   ///< likewise
  std::int64_t inner = 1;       ///< 1 for Layout::contiguous
  float scale = 1;              ///< softmax(scale * x); the product is rounded before the maximum is subtracted
};

/// Bytes of one element.
[[nodiscard]] constexpr int size_of(DType type) noexcept { return type == DType::f64 ? 8 : type == DType::f32 ? 4 : 2; }

}  // namespace jitsoftmax
