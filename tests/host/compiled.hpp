// The kernels that were compiled for the CPU, by their name expressions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernel_templates/config.cuh"

namespace jitsoftmax::host_test {

struct Compiled {
  std::string_view name;
  void (*kernel)(kernels::Arguments);
};
using Table = std::span<const Compiled>;

// Defined in a generated file.
[[nodiscard]] std::vector<Table> tables();

}  // namespace jitsoftmax::host_test
