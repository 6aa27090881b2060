// The kernels for what every CPU of the architecture runs.
#include "host/kernels_impl.hpp"

namespace jitsoftmax::host {

constinit const Kernels kernels_baseline = kernels;

}  // namespace jitsoftmax::host
