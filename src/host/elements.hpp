// The element types in memory, and their conversion to and from vectors of accumulators. To f16 and
// bf16 to nearest, ties to even, subnormals kept; NaN stays NaN. For kernels_*.cpp only.
#pragma once

#include "host/vectors.hpp"

namespace jitsoftmax::host {
namespace {

template <class T>
struct Same {
  using Storage = T;
  using Accumulator = T;
  using Stored = Native<T>;

  JITSOFTMAX_INLINE static Native<T> decode(Stored v) { return v; }
  JITSOFTMAX_INLINE static Stored encode(Native<T> v) { return v; }
};
using F32 = Same<float>;
using F64 = Same<double>;

using Words = Vector<std::uint32_t, native_lanes<float>>;  // the bits of Floats
using Integers = Vector<std::int32_t, native_lanes<float>>;

JITSOFTMAX_INLINE Words bits_of(Floats v) { return reinterpret_cast<Words>(v); }
template <class W>
JITSOFTMAX_INLINE Floats floats_of(W v) {
  return reinterpret_cast<Floats>(v);
}

struct BF16 {
  using Storage = std::uint16_t;
  using Accumulator = float;
  using Stored = Halves;

  JITSOFTMAX_INLINE static Floats decode(Stored v) { return floats_of(__builtin_convertvector(v, Words) << 16); }

  JITSOFTMAX_INLINE static Stored encode(Floats v) {
    const Words bits = bits_of(v);
    const Words rounded = bits + (0x7fffU + ((bits >> 16) & 1));
    const Words quiet = bits | 0x400000;
    // NOLINTNEXTLINE(misc-redundant-expression): false for NaN
    return __builtin_convertvector((v == v ? rounded : quiet) >> 16, Halves);
  }
};

struct F16 {
  using Storage = std::uint16_t;
  using Accumulator = float;
  using Stored = Halves;

#if defined(JITSOFTMAX_AVX512)
  JITSOFTMAX_INLINE static Floats decode(Stored v) {
    return reinterpret_cast<Floats>(_mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(v)));
  }
  JITSOFTMAX_INLINE static Stored encode(Floats v) {
    return reinterpret_cast<Stored>(
        _mm512_maskz_cvtps_ph(0xffff, reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT));
  }
#elif defined(JITSOFTMAX_AVX2)
  JITSOFTMAX_INLINE static Floats decode(Stored v) {
    return reinterpret_cast<Floats>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(v)));
  }
  JITSOFTMAX_INLINE static Stored encode(Floats v) {
    return reinterpret_cast<Stored>(_mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
  }
#else
  static constexpr std::uint32_t rebias = (127 - 15) << 23;

  JITSOFTMAX_INLINE static Floats decode(Stored v) {
    const Words bits = __builtin_convertvector(v, Words);
    const Words sign = (bits & 0x8000) << 16;
    const Words magnitude = bits & 0x7fff;
    const Words normal = (magnitude << 13) + rebias;
    const Words subnormal = bits_of(__builtin_convertvector(reinterpret_cast<Integers>(magnitude), Floats) * 0x1p-24F);
    const Words finite = magnitude < 0x400 ? subnormal : normal;
    return floats_of(sign | (magnitude >= 0x7c00 ? normal + rebias : finite));
  }

  JITSOFTMAX_INLINE static Stored encode(Floats v) {
    const Words bits = bits_of(v);
    const Words magnitude = bits & 0x7fffffff;
    const Words sign = (bits >> 16) & 0x8000;
    const Words normal = (magnitude + (0xfff + ((magnitude >> 13) & 1)) - rebias) >> 13;
    // The last bit of a float in [0.5, 1) is the smallest f16: the addition rounds.
    const Words subnormal = bits_of(floats_of(magnitude) + 0.5F) - 0x3f000000;
    const Words finite = magnitude < (113 << 23) ? subnormal : normal;
    const Words special = magnitude > 0x7f800000 ? Words{} + 0x7e00 : Words{} + 0x7c00;
    return __builtin_convertvector(sign | (magnitude >= (143 << 23) ? special : finite), Halves);
  }
#endif
};

}  // namespace
}  // namespace jitsoftmax::host
