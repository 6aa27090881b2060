// The header of a NumPy .npy file: what is in the array, as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <jitsoftmax/problem.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace jitsoftmax::tools::npy {

using Shape = std::vector<std::int64_t>;

struct Header {
  DType dtype = DType::f32;  // f16, f32 or f64
  Shape shape;               // one dimension or more
};

// Bytes of all elements; throws Failure where they are more than memory can hold.
[[nodiscard]] std::size_t byte_count(const Header& header);

// Reads the Python dictionary of a header of any version. Throws Failure, with what to do, for
// anything that the program cannot compute on.
[[nodiscard]] Header parse_header(std::string_view dictionary);

// Everything in front of the data, magic included, as numpy.save writes it.
[[nodiscard]] std::string header_bytes(const Header& header);

// "float32"
[[nodiscard]] std::string_view numpy_name(DType dtype) noexcept;

// "(3, 4)", "(3,)"
[[nodiscard]] std::string describe(const Shape& shape);

}  // namespace jitsoftmax::tools::npy
