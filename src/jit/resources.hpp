// What the assembler's report says about a kernel. Pure.
#pragma once

#include <string_view>

#include "jit/cubin.hpp"

namespace jitsoftmax::jit {

// Reads the log of a compile with --ptxas-options=-v that has one kernel. Functions that were not
// inlined into it have stack and spills of their own, so these are summed; registers and shared
// memory belong to the kernel. What the log does not mention is 0.
[[nodiscard]] Resources parse_resources(std::string_view log) noexcept;

}  // namespace jitsoftmax::jit
