// The kernels for AVX2 and F16C.
#include "host/kernels_impl.hpp"

namespace jitsoftmax::host {

constinit const Kernels kernels_avx2 = kernels;

}  // namespace jitsoftmax::host
