// Matrix: rows of one element type in an allocation of exactly the size that they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <jitsoftmax/problem.hpp>
#include <memory>

namespace jitsoftmax::host_test {

// Where the elements are: as in Rows, with `phase` elements before the first one, so that rows begin
// at any alignment.
struct Shape {
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::int64_t stride = 0;  // 0: packed
  std::int64_t phase = 0;
  std::int64_t inner = 1;
};

class Matrix {
 public:
  // Ends with the last element, so that the address sanitizer sees an access beyond it. All bytes
  // are filled with a pattern.
  Matrix(DType type, const Shape& shape);

  [[nodiscard]] const Shape& shape() const { return shape_; }  // stride resolved
  [[nodiscard]] void* data() { return bytes_.get() + at(0, 0); }
  [[nodiscard]] double get(std::int64_t row, std::int64_t col) const;
  void set(std::int64_t row, std::int64_t col, double value);  // rounded to the type

  // Whether the bytes that belong to no element are as they were: before the rows and between them.
  [[nodiscard]] bool gaps_untouched() const;
  [[nodiscard]] bool same_bits(std::int64_t row, const Matrix& other, std::int64_t other_row) const;

 private:
  [[nodiscard]] std::size_t at(std::int64_t row, std::int64_t col) const;  // in bytes

  DType type_;
  Shape shape_;
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace jitsoftmax::host_test
