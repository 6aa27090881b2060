// The kernels for AVX-512 F, DQ, BW and VL.
#include "host/kernels_impl.hpp"

namespace jitsoftmax::host {

constinit const Kernels kernels_avx512 = kernels;

}  // namespace jitsoftmax::host
