// The kernels for AVX-512 F, DQ, BW and VL.
#if defined(__x86_64__)
#include "host/kernels_impl.hpp"

namespace jitsoftmax::host {

constinit const Kernels kernels_avx512 = kernels;

}  // namespace jitsoftmax::host
#endif
