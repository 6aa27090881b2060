// The machine's vectors, in the language of GCC's and Clang's vector extensions: +, *, < and ?: work
// on all lanes. Their width is that of the instruction set the including file is compiled for.
//
// For kernels_*.cpp only. Everything is in an anonymous namespace, and nothing of the standard
// library is called: code compiled for one instruction set must never be linked into another's.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace jitsoftmax::host {
namespace {

#if defined(__AVX512F__)
#define JITSOFTMAX_AVX512 1
inline constexpr int native_bytes = 64;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define JITSOFTMAX_AVX2 1
inline constexpr int native_bytes = 32;
#else
inline constexpr int native_bytes = 16;
#endif

template <class T, int Lanes>
struct VectorOf {
  using type [[gnu::vector_size(sizeof(T) * Lanes)]] = T;
};
template <class T, int Lanes>
using Vector = typename VectorOf<T, Lanes>::type;

template <class T>
constexpr int native_lanes = native_bytes / static_cast<int>(sizeof(T));
template <class T>
using Native = Vector<T, native_lanes<T>>;

using Floats = Native<float>;
using Doubles = Native<double>;
using Halves = Vector<std::uint16_t, native_lanes<float>>;  // one f16 or bf16 for each of Floats

#define JITSOFTMAX_INLINE [[gnu::always_inline]] inline

template <class V>
JITSOFTMAX_INLINE V load_vector(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class V>
JITSOFTMAX_INLINE void store_vector(void* to, V v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// Past the caches; `to` is aligned to the vector. Visible to other threads after stream_fence().
template <class V>
JITSOFTMAX_INLINE void stream_vector(void* to, V v) {
#if defined(JITSOFTMAX_AVX512)
  if constexpr (sizeof v == 64) return _mm512_stream_si512(static_cast<__m512i*>(to), reinterpret_cast<__m512i>(v));
#endif
#if defined(JITSOFTMAX_AVX2) || defined(JITSOFTMAX_AVX512)
  if constexpr (sizeof v == 32) return _mm256_stream_si256(static_cast<__m256i*>(to), reinterpret_cast<__m256i>(v));
#endif
#if defined(__x86_64__)
  if constexpr (sizeof v == 16) return _mm_stream_si128(static_cast<__m128i*>(to), reinterpret_cast<__m128i>(v));
#endif
  store_vector(to, v);
}

JITSOFTMAX_INLINE void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

template <class V, class T>
JITSOFTMAX_INLINE V broadcast(T value) {
  return V{} + value;
}

// What the vector extensions have no word for.
//
// larger(a, b): the larger one; b where either is a NaN.
// multiply_add(a, b, c): a * b + c, rounded once where the machine has that as one instruction.
#if defined(JITSOFTMAX_AVX512)
// Masked forms with all lanes set: GCC 12 warns of an uninitialized variable in the plain ones.
JITSOFTMAX_INLINE Floats larger(Floats a, Floats b) { return _mm512_maskz_max_ps(0xffff, a, b); }
JITSOFTMAX_INLINE Doubles larger(Doubles a, Doubles b) { return _mm512_maskz_max_pd(0xff, a, b); }
JITSOFTMAX_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
JITSOFTMAX_INLINE Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(JITSOFTMAX_AVX2)
JITSOFTMAX_INLINE Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }
JITSOFTMAX_INLINE Doubles larger(Doubles a, Doubles b) { return _mm256_max_pd(a, b); }
JITSOFTMAX_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
JITSOFTMAX_INLINE Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm256_fmadd_pd(a, b, c); }
#elif defined(__x86_64__)
JITSOFTMAX_INLINE Floats larger(Floats a, Floats b) { return _mm_max_ps(a, b); }
JITSOFTMAX_INLINE Doubles larger(Doubles a, Doubles b) { return _mm_max_pd(a, b); }
template <class V>
JITSOFTMAX_INLINE V multiply_add(V a, V b, V c) {
  return a * b + c;
}
#else
template <class V>
JITSOFTMAX_INLINE V larger(V a, V b) {
  return a > b ? a : b;
}
#if defined(__aarch64__)
JITSOFTMAX_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
JITSOFTMAX_INLINE Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return vfmaq_f64(c, a, b); }
#else
template <class V>
JITSOFTMAX_INLINE V multiply_add(V a, V b, V c) {
  return a * b + c;
}
#endif
#endif

}  // namespace
}  // namespace jitsoftmax::host
