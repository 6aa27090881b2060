// The kernels for AVX2, FMA and F16C.
#if defined(__x86_64__)
#include "host/kernels_impl.hpp"

namespace jitsoftmax::host {

constinit const Kernels kernels_avx2 = kernels;

}  // namespace jitsoftmax::host
#endif
