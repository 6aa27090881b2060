#include "host/matrix.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "reference.hpp"

namespace jitsoftmax::host_test {
namespace {

constexpr auto pattern = std::byte{0xa5};  // a small negative number in every type

}  // namespace

Matrix::Matrix(DType type, const Shape& shape) : type_(type), shape_(shape) {
  if (shape_.stride == 0) shape_.stride = shape_.cols * shape_.inner;
  size_ = at(shape_.rows - 1, shape_.cols - 1) + static_cast<std::size_t>(size_of(type_));
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_);
  std::fill_n(bytes_.get(), size_, pattern);
}

std::size_t Matrix::at(std::int64_t row, std::int64_t col) const {
  const std::int64_t element = row / shape_.inner * shape_.stride + col * shape_.inner + row % shape_.inner;
  return static_cast<std::size_t>((shape_.phase + element) * size_of(type_));
}

double Matrix::get(std::int64_t row, std::int64_t col) const {
  return testing::read(type_, bytes_.get() + at(row, col), 0);
}

void Matrix::set(std::int64_t row, std::int64_t col, double value) {
  testing::write(type_, bytes_.get() + at(row, col), 0, value);
}

bool Matrix::gaps_untouched() const {
  std::vector<char> element(size_);
  for (std::int64_t row = 0; row < shape_.rows; ++row) {
    for (std::int64_t col = 0; col < shape_.cols; ++col) {
      std::fill_n(element.begin() + static_cast<std::ptrdiff_t>(at(row, col)), size_of(type_), 1);
    }
  }
  for (std::size_t byte = 0; byte < size_; ++byte) {
    if (element[byte] == 0 && bytes_[byte] != pattern) return false;
  }
  return true;
}

bool Matrix::same_bits(std::int64_t row, const Matrix& other, std::int64_t other_row) const {
  for (std::int64_t col = 0; col < shape_.cols; ++col) {
    if (std::memcmp(bytes_.get() + at(row, col), other.bytes_.get() + other.at(other_row, col),
                    static_cast<std::size_t>(size_of(type_))) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace jitsoftmax::host_test
