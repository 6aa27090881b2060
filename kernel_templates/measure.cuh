// measure: not softmax. What measuring needs on the device: a copy, which is the limit that softmax
// is held against, and random numbers to compute on.
#pragma once

#include "device.cuh"

namespace jitsoftmax::kernels {

// Moves arguments.cols packets of 16 bytes; a thread has `elements` of them in flight.
template <Config config>
JITSOFTMAX_KERNEL(config)
copy(const Arguments arguments) {
  using Bits = unsigned;
  constexpr int words = 4;
  const Bits* in = static_cast<const Bits*>(arguments.in);
  Bits* out = static_cast<Bits*>(arguments.out);
  const long long first = block_index() * config.threads * config.elements + thread_index();
  Packet<Bits, words> packets[config.elements];
  for (int i = 0; i < config.elements; ++i) {
    const long long at = first + static_cast<long long>(i) * config.threads;
    if (at < arguments.cols) packets[i] = load_wide<Bits, words>(in + at * words);
  }
  for (int i = 0; i < config.elements; ++i) {
    const long long at = first + static_cast<long long>(i) * config.threads;
    if (at < arguments.cols) store_wide(out + at * words, packets[i]);
  }
}

// A well-mixed 32-bit hash (Wellons' lowbias32).
inline unsigned mix(unsigned x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

// Writes arguments.cols numbers, roughly normal with standard deviation `scale`: the sum of four
// uniform ones. `rows` is the seed.
template <Config config, class T>
JITSOFTMAX_KERNEL(config)
fill(const Arguments arguments) {
  const long long at = block_index() * config.threads + thread_index();
  if (at >= arguments.cols) return;
  const unsigned state =
      mix(static_cast<unsigned>(at) ^ mix(static_cast<unsigned>(at >> 32) + static_cast<unsigned>(arguments.rows)));
  float sum = -2.0f;
  for (unsigned i = 0; i < 4; ++i) sum = sum + static_cast<float>(mix(state + i * 0x9e3779b9u) >> 8) * 0x1p-24f;
  constexpr float to_unit_deviation = 1.7320508f;  // the sum has variance 4 / 12
  static_cast<T*>(arguments.out)[at] = narrow<T>(accumulator<T>(sum * to_unit_deviation * arguments.scale));
}

}  // namespace jitsoftmax::kernels
