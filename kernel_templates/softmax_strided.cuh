// strided: softmax along a dimension that is not the last. The elements of a row are `inner` apart
// and neighbouring rows are neighbours in memory, so a warp takes 32 rows side by side: every access
// of it is one contiguous piece. `threads` warps share the 32 rows and split the columns.
#pragma once

#include "online.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
strided(const Arguments arguments) {
  using Real = accumulator<In>;
  using Exp = Exponential<Real>;
  using Index = typename Columns::Index;
  static_assert(config.rows == warp_size && config.vector == 1);
  static_assert(config.shared == config.threads * config.rows * 2 * static_cast<int>(sizeof(Real)),
                "the launch has the shared memory of the plan");
  constexpr Index step = static_cast<Index>(config.threads) * config.elements;
  const int lane = thread_index() % config.rows;
  const int part = thread_index() / config.rows;

  const long long row = block_index() * config.rows + lane;
  const bool live = row < arguments.rows;
  const Index cols = live ? Columns::count(arguments) : 0;
  const long long outer = row / arguments.inner;
  const long long offset = row % arguments.inner;
  const In* in = static_cast<const In*>(arguments.in) + outer * arguments.in_stride + offset;
  Out* out = static_cast<Out*>(arguments.out) + outer * arguments.out_stride + offset;
  const Real scale = arguments.scale;

  const auto column = [&](Index first, int i) { return first + static_cast<Index>(i * config.threads + part); };
  const auto load = [&](Real(&x)[config.elements], Index first) {
    for (int i = 0; i < config.elements; ++i) {
      const Index j = column(first, i);
      x[i] = j < cols ? scale * widen(in[static_cast<long long>(j) * arguments.inner]) : -infinity<Real>();
    }
  };
  Real x[config.elements];

  Accumulator<Exp, Real, true> share;
  for (Index first = 0; first < cols; first += step) {
    load(x, first);
    share.add(x);
  }

  const SharedArray<Partial<Real>> parts(0);
  parts.store(part * config.rows + lane, share.partial());
  sync_block();
  Real max = -infinity<Real>();
  for (int i = 0; i < config.threads; ++i) max = maximum(max, parts.load(i * config.rows + lane).max);
  Real sum = 0;
  for (int i = 0; i < config.threads; ++i) sum = sum + parts.load(i * config.rows + lane).sum_at(max);
  const Finish<Op, Exp, Real> finish({max, sum}, arguments.zero_masked != 0);

  for (Index first = 0; first < cols; first += step) {
    load(x, first);
    for (int i = 0; i < config.elements; ++i) {
      const Index j = column(first, i);
      if (j < cols) out[static_cast<long long>(j) * arguments.inner] = narrow<Out>(finish(x[i]));
    }
  }
}

}  // namespace jitsoftmax::kernels
