#include "host/matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernel_templates/types.cuh"

namespace jitsoftmax::host_test {
namespace {

constexpr auto pattern = std::byte{0xa5};  // a small negative number in every type

// The value of a binary format with 16 bits, from its definition.
double decode(std::uint16_t bits, int mantissa_bits, int bias) {
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x7fff >> mantissa_bits) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const double leading = exponent == 0 ? 0 : 1 << mantissa_bits;
  return sign * std::ldexp(leading + mantissa, std::max(exponent, 1) - bias - mantissa_bits);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace

Matrix::Matrix(DType type, const Shape& shape) : type_(type), shape_(shape) {
  if (shape_.stride == 0) shape_.stride = shape_.cols * shape_.inner;
  size_ = at(shape_.rows - 1, shape_.cols - 1) + static_cast<std::size_t>(size_of(type_));
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_);
  std::fill_n(bytes_.get(), size_, pattern);
}

std::size_t Matrix::at(std::int64_t row, std::int64_t col) const {
  const std::int64_t element =
      shape_.phase + row / shape_.inner * shape_.stride + col * shape_.inner + row % shape_.inner;
  return static_cast<std::size_t>(element * size_of(type_));
}

double Matrix::get(std::int64_t row, std::int64_t col) const {
  const std::byte* const from = bytes_.get() + at(row, col);
  switch (type_) {
    case DType::f16:
      return decode(load<std::uint16_t>(from), 10, 15);
    case DType::bf16:
      return decode(load<std::uint16_t>(from), 7, 127);
    case DType::f32:
      return static_cast<double>(load<float>(from));
    default:
      return load<double>(from);
  }
}

void Matrix::set(std::int64_t row, std::int64_t col, double value) {
  std::byte* const to = bytes_.get() + at(row, col);
  switch (type_) {
    case DType::f16:
      return store(to, kernels::portable::narrow_f16(static_cast<float>(value)));
    case DType::bf16:
      return store(to, kernels::portable::narrow_bf16(static_cast<float>(value)));
    case DType::f32:
      return store(to, static_cast<float>(value));
    default:
      return store(to, value);
  }
}

bool Matrix::gaps_untouched() const {
  std::vector<bool> element(size_);
  for (std::int64_t row = 0; row < shape_.rows; ++row) {
    for (std::int64_t col = 0; col < shape_.cols; ++col) {
      std::fill_n(element.begin() + static_cast<std::ptrdiff_t>(at(row, col)), size_of(type_), true);
    }
  }
  for (std::size_t byte = 0; byte < size_; ++byte) {
    if (!element[byte] && bytes_[byte] != pattern) return false;
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
