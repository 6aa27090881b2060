// What the assembler's report says about a kernel. Pure.
#pragma once

#include <string_view>

#include "jit/cubin.hpp"

namespace jitsoftmax::jit {

// Reads what the log of a compile with --ptxas-options=-v says of a kernel, by its lowered name. Functions that
// were not inlined into it have stack and spills of their own, so these are summed; registers and shared
// memory belong to the kernel. What the log does not mention is 0.
[[nodiscard]] Resources parse_resources(std::string_view log, std::string_view kernel) noexcept;

}  // namespace jitsoftmax::jit
