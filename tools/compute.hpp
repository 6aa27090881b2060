// Runs a prepared kernel over a whole array, in slices of its outer dimension.
#pragma once

#include <jitsoftmax/kernel.hpp>

#include "work.hpp"

namespace jitsoftmax::tools {

// `kernel` is one of a host engine. Throws Interrupted between two slices.
void compute_on_host(const Kernel& kernel, const Work& work);

// `kernel` is one for the device whose context is current. The array may be larger than the
// device's memory, a single slice may not (ErrorCode::out_of_memory). Returns when `work.out` is
// complete. Throws Interrupted between two slices.
void compute_on_cuda(const Kernel& kernel, const Work& work);

}  // namespace jitsoftmax::tools
