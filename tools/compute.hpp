// Runs a prepared kernel over a whole array, in slices of its outer dimension.
#pragma once

#include <cstddef>
#include <jitsoftmax/kernel.hpp>

#include "work.hpp"

namespace jitsoftmax::tools {

// `kernel` is one of a host engine. A slice has at most `slice_bytes` of input and output, but at
// least one step of the outer dimension: large enough to keep all cores busy, small enough for
// Ctrl-C to be heard within a moment. Throws Interrupted between two slices.
void compute_on_host(const Kernel& kernel, const Work& work, std::size_t slice_bytes = std::size_t{256} << 20);

// `kernel` is one for the device whose context is current. The array may be larger than the
// device's memory, a single slice may not (ErrorCode::out_of_memory). Returns when `work.out` is
// complete. A slice takes at most `slice_bytes`, beyond which nothing is gained, and three quarters
// of the memory that is free: the rest stays for the driver and for others. Throws Interrupted
// between two slices.
void compute_on_cuda(const Kernel& kernel, const Work& work, std::size_t slice_bytes = std::size_t{4} << 30);

}  // namespace jitsoftmax::tools
