// Element types, packets of them, and the number of columns as a type. Portable C++: the twins of
// the conversions that device.cuh does in hardware are here too.
#pragma once

#include "config.cuh"

namespace jitsoftmax::kernels {

// IEEE binary16 and bfloat16, as the bits in memory. Own types, so that no toolkit header is needed.
struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};

template <class T>
constexpr bool is_bf16 = false;
template <>
constexpr bool is_bf16<bf16> = true;

template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
// The type that a row of T is computed in.
template <class T>
using accumulator = typename AccumulatorOf<T>::type;

inline float negated(float x) { return -x; }
inline double negated(double x) { return -x; }
inline f16 negated(f16 x) { return {static_cast<unsigned short>(x.bits ^ 0x8000u)}; }
inline bf16 negated(bf16 x) { return {static_cast<unsigned short>(x.bits ^ 0x8000u)}; }

// What no element is smaller than.
template <class T>
constexpr T lowest_of() {
  return -static_cast<T>(__builtin_bit_cast(float, 0x7f800000u));
}
template <>
constexpr f16 lowest_of<f16>() {
  return {0xfc00};
}
template <>
constexpr bf16 lowest_of<bf16>() {
  return {0xff80};
}

// `width` neighbouring elements, as one aligned access moves them.
template <class T, int width>
struct alignas(sizeof(T) * width) Packet {
  T at[width];
};

template <int width, class T>
Packet<T, width> packet_of(T value) {
  Packet<T, width> packet;
  for (T& element : packet.at) element = value;
  return packet;
}

// The number of columns, known when the kernel is compiled or only when it is launched. `Index`
// counts elements of a row: 32 bits where they are enough, since loops over a row are hot.
template <bool wide>
struct IndexOf {
  using type = int;
};
template <>
struct IndexOf<true> {
  using type = long long;
};
template <long long columns>
struct Static {
  using Index = typename IndexOf<(columns >= (1LL << 30))>::type;
  static constexpr bool is_known = true;
  static constexpr Index count(const Arguments&) { return static_cast<Index>(columns); }
  template <int width>
  static constexpr bool whole_packets = columns % width == 0;
};
struct Runtime {
  using Index = long long;
  static constexpr bool is_known = false;
  static Index count(const Arguments& arguments) { return arguments.cols; }
  template <int width>
  static constexpr bool whole_packets = width == 1;
};

namespace portable {

inline float widen(f16 x) {
  const unsigned sign = (x.bits & 0x8000u) << 16;
  const unsigned magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // The exponent is rebiased by a multiplication, which also normalizes subnormals.
  const float scaled = __builtin_bit_cast(float, magnitude << 13) * 0x1p112f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(unsigned, scaled));
}

inline f16 narrow_f16(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned sign = bits >> 16 & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  unsigned result = 0;
  if (magnitude > 0x7f800000u) {
    result = 0x7fffu;  // NaN
  } else if (magnitude >= 0x477ff000u) {
    result = 0x7c00u;  // rounds beyond 65504, or infinite
  } else if (magnitude < 0x38800000u) {
    // Subnormal in f16: adding 0.5 lets the f32 adder round at the right place.
    result = __builtin_bit_cast(unsigned, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  } else {
    result = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  }
  return {static_cast<unsigned short>(sign | result)};
}

inline bf16 narrow_bf16(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned rounded = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fff0000u : bits + 0x7fffu + (bits >> 16 & 1u);
  return {static_cast<unsigned short>(rounded >> 16)};
}

}  // namespace portable
}  // namespace jitsoftmax::kernels
