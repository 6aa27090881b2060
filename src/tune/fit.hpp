// Fit: which kernels cannot be the fastest, or cannot run at all, as told without running them. Pure.
#pragma once

#include <string>

#include "jit/cubin.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax::tune {

// Of one device, per block.
struct DeviceLimits {
  int threads = 1024;
  int registers = 64 * 1024;
  int shared_bytes = 48 * 1024;  // with permission
};

// Why it is not worth compiling, as a clause; empty: it is.
[[nodiscard]] std::string unfit(const plan::Specialization& specialization, const DeviceLimits& limits);

// The same of what was compiled. A kernel that is chosen uses no local memory.
[[nodiscard]] std::string unfit(const plan::Specialization& specialization, const jit::Resources& used,
                                const DeviceLimits& limits);

}  // namespace jitsoftmax::tune
