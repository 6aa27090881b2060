// looped: the online recurrence in one pass, the result in a second: the row is read twice. Rows of
// any length; with Runtime columns it is the generic kernel. The lesson's v0, v1, v2 and v4 are
// points of it.
#pragma once

#include "row_group.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
looped(const Arguments arguments) {
  using Real = accumulator<In>;
  using Index = typename Columns::Index;
  constexpr Index step = static_cast<Index>(config.threads) * config.elements;
  const RowGroup<config, Columns, Real> group;
  const Real scale = arguments.scale;

  const long long tiles = (arguments.rows + config.rows - 1) / config.rows;
  for (long long tile = block_index(); tile < tiles; tile += grid_blocks()) {
    const long long row = group.row(tile);
    const bool live = row < arguments.rows;
    const Index cols = live ? Columns::count(arguments) : 0;
    const In* in = static_cast<const In*>(arguments.in) + row * arguments.in_stride;
    Out* out = static_cast<Out*>(arguments.out) + row * arguments.out_stride;
    const bool wide_in = group.wide(in);
    const bool wide_out = group.wide(out);
    Real x[config.elements];

    Accumulator<Real, config.blocked> share;
    for (Index first = 0; first < cols; first += step) {
      group.load(x, in, first, cols, scale, wide_in);
      share.add(x);
    }
    const Partial<Real> whole = group.merge(share.partial());
    const Real zero = anchor(whole.max);
    const Real factor = Op::row_factor(whole.sum, arguments.zero_masked != 0);

    for (Index first = 0; first < cols; first += step) {
      group.load(x, in, first, cols, scale, wide_in);
      for (Real& value : x) value = Op::result(Op::kept(value - zero, exponential(value - zero)), factor);
      group.store(x, out, first, cols, wide_out);
    }
    if constexpr (!config.persistent) return;
    group.reuse();
  }
}

}  // namespace jitsoftmax::kernels
