// The loops themselves. Included by kernels_*.cpp, each of which is compiled for one instruction set.
#pragma once

#include "host/elements.hpp"
#include "host/exponential.hpp"
#include "host/kernels.hpp"
#include "host/vectors.hpp"

namespace jitsoftmax::host {
namespace {

inline constexpr float minus_infinity = -__builtin_inff();

// The rows of a group that are reduced as a tree before they join the running value: short chains
// for the machine, small errors for a sum.
inline constexpr int block = 8;

// Joins the lanes by halves, in place.
template <class T, class Join>
JITSOFTMAX_INLINE T fold(T* lanes, int count, Join join) {
  for (int half = count / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] = join(lanes[l], lanes[l + half]);
  }
  return lanes[0];
}

template <class E>
double load(void* y, const void* x, std::int64_t n, float scale) {
  using A = typename E::Accumulator;
  using S = typename E::Storage;
  using V = Native<A>;
  constexpr int width = native_lanes<A>;
  A* to = static_cast<A*>(y);
  const S* from = static_cast<const S*>(x);
  const V factor = broadcast<V>(static_cast<A>(scale));
  V maximum = broadcast<V>(static_cast<A>(minus_infinity));
  const std::int64_t padded = (n + group_lanes - 1) / group_lanes * group_lanes;
  for (std::int64_t i = padded - group_lanes; i < padded; i += width) store_vector(to + i, maximum);
  const auto step = [&](std::int64_t i) __attribute__((always_inline)) {
    const V v = factor * E::decode(load_vector<typename E::Stored>(from + i));
    store_vector(to + i, v);
    maximum = larger(v, maximum);
  };
  std::int64_t i = 0;
  for (; i + width <= n; i += width) step(i);
  if (i < n) step(n - width);
  A lanes[group_lanes];
  store_vector(lanes, maximum);
  return fold(lanes, width, [](A a, A b) { return a > b ? a : b; });
}

template <class E>
void load_tile(void* y, const void* x, const Tile& tile, float scale) {
  using A = typename E::Accumulator;
  using S = typename E::Storage;
  constexpr int width = native_lanes<A>;
  const auto factor = broadcast<Native<A>>(static_cast<A>(scale));
  const int groups = tile.groups();
  const bool in_place = tile.offsets == nullptr && tile.lanes % group_lanes == 0;
  S copy[tile_lanes] = {};
  for (std::int64_t j = 0; j < tile.length; ++j) {
    const S* from = static_cast<const S*>(x) + j * tile.step;
    if (tile.offsets != nullptr) {
      for (int l = 0; l < tile.lanes; ++l) copy[l] = from[tile.offsets[l]];
    } else if (!in_place) {
      for (int l = 0; l < tile.lanes; ++l) copy[l] = from[l];
    }
    if (!in_place) from = copy;
    for (int g = 0; g < groups; ++g) {
      A* to = static_cast<A*>(y) + (g * tile.length + j) * group_lanes;
      for (int l = 0; l < group_lanes; l += width) {
        store_vector(to + l, factor * E::decode(load_vector<typename E::Stored>(from + g * group_lanes + l)));
      }
    }
  }
}

template <class A>
JITSOFTMAX_INLINE void reduce_maxima(const A* y, std::int64_t n, A* lanes) {
  using V = Native<A>;
  constexpr int width = native_lanes<A>;
  for (int l = 0; l < group_lanes; l += width) {
    const A* from = y + l;
    V running = broadcast<V>(static_cast<A>(minus_infinity));
    std::int64_t j = 0;
    for (; j + block <= n; j += block, from += block * group_lanes) {
      V v[block];
      for (int k = 0; k < block; ++k) v[k] = larger(load_vector<V>(from + k * group_lanes), running);
      running = larger(larger(larger(v[0], v[1]), larger(v[2], v[3])), larger(larger(v[4], v[5]), larger(v[6], v[7])));
    }
    for (; j < n; ++j, from += group_lanes) running = larger(load_vector<V>(from), running);
    store_vector(lanes + l, running);
  }
}

template <class A>
void maxima(const void* y, std::int64_t n, double* result) {
  A lanes[group_lanes];
  reduce_maxima(static_cast<const A*>(y), n, lanes);
  for (int l = 0; l < group_lanes; ++l) result[l] = lanes[l];
}

// Blocks are summed in A, and added up in double.
template <bool Keep, bool Prefetch, class A>
JITSOFTMAX_INLINE void reduce_sums(A* y, std::int64_t n, const A* maximum, double* lanes, const A* next) {
  using V = Native<A>;
  using D = Vector<double, native_lanes<A>>;
  constexpr int width = native_lanes<A>;
  const auto term = [](A * at, V m) __attribute__((always_inline)) {
    const V e = exponential<A>(load_vector<V>(at) - m);
    if constexpr (Keep) store_vector(at, e);
    return e;
  };
  for (int l = 0; l < group_lanes; l += width) {
    A* at = y + l;
    const V m = load_vector<V>(maximum + l);
    D running = {};
    std::int64_t j = 0;
    for (; j + block <= n; j += block, at += block * group_lanes) {
      V v[block];
      for (int k = 0; k < block; ++k) {
        if constexpr (Prefetch) __builtin_prefetch(next + (j + k) * group_lanes + l);
        v[k] = term(at + k * group_lanes, m);
      }
      const V sum = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
      running += __builtin_convertvector(sum, D);
    }
    for (; j < n; ++j, at += group_lanes) running += __builtin_convertvector(term(at, m), D);
    __builtin_memcpy(lanes + l, &running, sizeof running);
  }
}

template <class A>
double sum(void* y, std::int64_t n, double maximum, bool keep, const void* next) {
  A m[group_lanes];
  for (A& lane : m) lane = static_cast<A>(maximum);
  A* at = static_cast<A*>(y);
  double lanes[group_lanes];
  if (!keep) {
    reduce_sums<false, false, A>(at, n, m, lanes, nullptr);
  } else if (next == nullptr) {
    reduce_sums<true, false, A>(at, n, m, lanes, nullptr);
  } else {
    reduce_sums<true, true, A>(at, n, m, lanes, static_cast<const A*>(next));
  }
  return fold(lanes, group_lanes, [](double a, double b) { return a + b; });
}

template <class A>
void sums(void* y, std::int64_t n, const double* maximum, double* result, bool keep) {
  A m[group_lanes];
  for (int l = 0; l < group_lanes; ++l) m[l] = static_cast<A>(maximum[l]);
  A* at = static_cast<A*>(y);
  if (keep) {
    reduce_sums<true, false, A>(at, n, m, result, nullptr);
  } else {
    reduce_sums<false, false, A>(at, n, m, result, nullptr);
  }
}

template <Op op, class V>
JITSOFTMAX_INLINE V shifted(V y, V maximum, V factor) {
  if constexpr (op == Op::softmax) return y * factor;
  return (y - maximum) - factor;
}

template <class E, Op op>
void store(void* out, const void* y, std::int64_t n, Shift shift, bool stream) {
  using A = typename E::Accumulator;
  using S = typename E::Storage;
  using V = Native<A>;
  constexpr int width = native_lanes<A>;
  S* to = static_cast<S*>(out);
  const A* from = static_cast<const A*>(y);
  const V maximum = broadcast<V>(static_cast<A>(shift.maximum));
  const V factor = broadcast<V>(static_cast<A>(shift.factor));
  const auto value = [&](std::int64_t i) __attribute__((always_inline)) {
    return E::encode(shifted<op>(load_vector<V>(from + i), maximum, factor));
  };
  std::int64_t i = 0;
  if (stream) {
    store_vector(to, value(0));
    const auto past = reinterpret_cast<std::uintptr_t>(to) % sizeof(typename E::Stored) / sizeof(S);
    i = past == 0 ? 0 : width - static_cast<std::int64_t>(past);
    for (; i + width <= n; i += width) stream_vector(to + i, value(i));
    stream_fence();
  } else {
    for (; i + width <= n; i += width) store_vector(to + i, value(i));
  }
  if (i < n) store_vector(to + n - width, value(n - width));
}

template <class E, Op op>
void store_tile(void* out, const void* y, const Tile& tile, const Shift* shifts) {
  using A = typename E::Accumulator;
  using S = typename E::Storage;
  using V = Native<A>;
  constexpr int width = native_lanes<A>;
  A maximum[tile_lanes] = {};
  A factor[tile_lanes] = {};
  for (int l = 0; l < tile.lanes; ++l) {
    maximum[l] = static_cast<A>(shifts[l].maximum);
    factor[l] = static_cast<A>(shifts[l].factor);
  }
  const int groups = tile.groups();
  const bool in_place = tile.offsets == nullptr && tile.lanes % group_lanes == 0;
  S copy[tile_lanes];
  for (std::int64_t j = 0; j < tile.length; ++j) {
    S* row = static_cast<S*>(out) + j * tile.step;
    S* to = in_place ? row : copy;
    for (int g = 0; g < groups; ++g) {
      const A* from = static_cast<const A*>(y) + (g * tile.length + j) * group_lanes;
      for (int l = 0; l < group_lanes; l += width) {
        const int lane = g * group_lanes + l;
        store_vector(to + lane, E::encode(shifted<op>(load_vector<V>(from + l), load_vector<V>(maximum + lane),
                                                      load_vector<V>(factor + lane))));
      }
    }
    if (tile.offsets != nullptr) {
      for (int l = 0; l < tile.lanes; ++l) row[tile.offsets[l]] = copy[l];
    } else if (!in_place) {
      for (int l = 0; l < tile.lanes; ++l) row[l] = copy[l];
    }
  }
}

template <class E>
constexpr Kernels::Element element = {load<E>,
                                      load_tile<E>,
                                      {store<E, Op::softmax>, store<E, Op::log_softmax>},
                                      {store_tile<E, Op::softmax>, store_tile<E, Op::log_softmax>}};

template <class A>
constexpr Kernels::Accumulator accumulator = {maxima<A>, sum<A>, sums<A>};

inline constexpr Kernels kernels = {{element<F16>, element<BF16>, element<F32>, element<F64>},
                                    {accumulator<float>, accumulator<double>}};

}  // namespace
}  // namespace jitsoftmax::host
