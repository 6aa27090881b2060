// Chooses the kernels that this CPU can run.
#include "host/kernels.hpp"

#ifdef JITSOFTMAX_HOST_X86
#include <cpuid.h>
#endif

namespace jitsoftmax::host {
namespace {

#ifdef JITSOFTMAX_HOST_X86
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

std::vector<const Kernels*> detect() {
  std::vector<const Kernels*> usable = {&kernels_baseline};
#ifdef JITSOFTMAX_HOST_X86
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !has_f16c()) return usable;
  usable.push_back(&kernels_avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    usable.push_back(&kernels_avx512);
  }
#endif
  return usable;
}

}  // namespace

const std::vector<const Kernels*>& usable_kernels() {
  static const std::vector<const Kernels*> usable = detect();
  return usable;
}

}  // namespace jitsoftmax::host
