// exp(x) for x <= 0, a vector at a time: exp(x) = 2^n * exp(r) with x = n * log(2) + r. For
// kernels_*.cpp only.
//
// Within 1.5 ulp, subnormal results included; exactly 1 at 0 and exactly 0 at -inf; NaN stays NaN.
#pragma once

#include "host/vectors.hpp"

namespace jitsoftmax::host {
namespace {

// `polynomial` is the q of exp(r) = 1 + r + r^2 q(r), the best one for |r| <= log(2)/2: its relative
// error is 3e-9 for float and 4e-18 for double.
template <class T>
struct ExponentialTraits;

template <>
struct ExponentialTraits<float> {
  using Bits = std::uint32_t;
  static constexpr float lowest = -105.0F;  // exp of it, and of all below, rounds to 0
  static constexpr float small = -100.0F;   // below it, 2^n is formed as 2^(n + 64) * 2^-64
  static constexpr Bits lift = 64;
  static constexpr float lower = 0x1p-64F;
  static constexpr float round = 0x1.8p23F;       // adding it leaves the nearest integer in the low bits
  static constexpr float log2_high = 0x1.63p-1F;  // few enough bits for n * log2_high to be exact
  static constexpr float log2_low = -0x1.bd0106p-13F;
  static constexpr float log2_e = 0x1.715476p+0F;
  static constexpr Bits bias = 127;
  static constexpr int mantissa = 23;
  static constexpr float polynomial[] = {0x1.fffffb97a5fddp-2F, 0x1.55549104290d9p-3F, 0x1.5558f2f627353p-5F,
                                         0x1.123a1f4696842p-7F, 0x1.6a23cf4eb56d8p-10F};
};

template <>
struct ExponentialTraits<double> {
  using Bits = std::uint64_t;
  static constexpr double lowest = -746.0;
  static constexpr double small = -1000.0;
  static constexpr Bits lift = 128;
  static constexpr double lower = 0x1p-128;
  static constexpr double round = 0x1.8p52;
  static constexpr double log2_high = 0x1.62e4p-1;
  static constexpr double log2_low = 0x1.7f7d1cf79abcap-20;
  static constexpr double log2_e = 0x1.71547652b82fep+0;
  static constexpr Bits bias = 1023;
  static constexpr int mantissa = 52;
  static constexpr double polynomial[] = {0x1.000000000000ap-1,  0x1.55555555554f9p-3,  0x1.555555555083ep-5,
                                          0x1.1111111127d0ep-7,  0x1.6c16c18438b08p-10, 0x1.a01a012a0f351p-13,
                                          0x1.a01999e2633fdp-16, 0x1.71df25b3100a2p-19, 0x1.28ad9b8551757p-22,
                                          0x1.ad7f3ee016e7dp-26};
};

// p * 2^n for whole n, where `rounded` is n + E::round; rounded once where the result is subnormal.
template <class T>
JITSOFTMAX_INLINE Native<T> times_power_of_2(Native<T> p, Native<T> n, Native<T> rounded) {
#if defined(JITSOFTMAX_AVX512)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_scalef_ps(0xffff, p, n);
  if constexpr (sizeof(T) == 8) return _mm512_maskz_scalef_pd(0xff, p, n);
#endif
  using V = Native<T>;
  using E = ExponentialTraits<T>;
  using B = Native<typename E::Bits>;
  const auto small = n < E::small;
  const B exponent = (reinterpret_cast<B>(rounded) + ((reinterpret_cast<B>(small) & E::lift) + E::bias)) << E::mantissa;
  return p * reinterpret_cast<V>(exponent) * (small ? broadcast<V>(E::lower) : broadcast<V>(T{1}));
}

template <class T>
JITSOFTMAX_INLINE Native<T> exponential(Native<T> x) {
  using V = Native<T>;
  using E = ExponentialTraits<T>;
  constexpr int degree = static_cast<int>(sizeof E::polynomial / sizeof(T)) - 1;
  x = larger(broadcast<V>(E::lowest), x);
  const V rounded = multiply_add(x, broadcast<V>(E::log2_e), broadcast<V>(E::round));
  const V n = rounded - E::round;
  V r = multiply_add(n, broadcast<V>(-E::log2_high), x);
  r = multiply_add(n, broadcast<V>(-E::log2_low), r);
  V q = broadcast<V>(E::polynomial[degree]);
  for (int i = degree - 1; i >= 0; --i) q = multiply_add(q, r, broadcast<V>(E::polynomial[i]));
  const V p = multiply_add(q, r * r, r) + T{1};
  return times_power_of_2<T>(p, n, rounded);
}

}  // namespace
}  // namespace jitsoftmax::host
