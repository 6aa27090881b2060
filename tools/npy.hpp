// NumPy .npy files of float16, float32 and float64 arrays in C order: versions 1.0, 2.0 and 3.0.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "npy_header.hpp"
#include "output_file.hpp"

namespace jitsoftmax::tools::npy {

struct Array {
  Header header;
  std::unique_ptr<std::byte[]> data;  // C order, aligned for every dtype

  // The elements are not initialized. Throws Failure where they are too many.
  explicit Array(Header of);

  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {data.get(), size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data.get(), size_}; }

 private:
  std::size_t size_;
};

// Reads the whole file (a pipe is as good). Throws Failure that names the file, what is wrong with
// it and what to do, or Interrupted.
[[nodiscard]] Array read(const std::string& path);

void write(const OutputFile& file, const Array& array);

}  // namespace jitsoftmax::tools::npy
