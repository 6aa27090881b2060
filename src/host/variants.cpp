// Implements host/variants.hpp.
#include "host/variants.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace jitsoftmax::host {
namespace {

#if defined(__x86_64__)
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
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return usable;
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

const char* name_of(const Kernels& kernels) noexcept {
#if defined(__x86_64__)
  if (&kernels == &kernels_avx512) return "AVX-512";
  if (&kernels == &kernels_avx2) return "AVX2";
#endif
  return &kernels == &kernels_baseline ? "baseline" : "unnamed";
}

}  // namespace jitsoftmax::host
