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
  using Exp = Exponential<Real>;
  using Index = typename Columns::Index;
  static_assert(config.shared == merge_bytes(config, sizeof(Real)), "the launch has the shared memory of the plan");
  using Group = RowGroup<config, Columns, Real>;
  constexpr Index step = Group::threads * (config.elements / config.vector);  // packets
  const Group group;
  const Real scale = arguments.scale;
  wait_for_predecessor(arguments);
  let_successor_start(arguments);

  const long long tiles = (arguments.rows + config.rows - 1) / config.rows;
  for (long long tile = group.tile(); tile < tiles; tile += grid_blocks()) {
    const long long row = group.row(tile);
    const bool live = row < arguments.rows;  // the last block can have rows to spare; it stays for the barriers
    const Index cols = live ? Columns::count(arguments) : 0;
    const In* in = static_cast<const In*>(arguments.in) + row * arguments.in_stride;
    Out* out = static_cast<Out*>(arguments.out) + row * arguments.out_stride;
    const auto cover = group.cover(in, cols);
    Real x[config.elements];
    typename Group::Edges edges;

    Accumulator<Exp, Real, config.blocked> share;
    for (Index first = 0; first < cover.packets; first += step) {
      group.load(x, in + cover.head, first, cover, scale);
      share.add(x);
    }
    group.load_edges(edges, in, cover, scale);
    if constexpr (Group::edges > 0) share.add(edges);
    const Finish<Op, Exp, Real> finish(group.merge(share.partial()), arguments.zero_masked != 0);

    for (Index first = 0; first < cover.packets; first += step) {
      group.load(x, in + cover.head, first, cover, scale);
      for (Real& value : x) value = finish(value);
      group.store(x, out + cover.head, first, cover);
    }
    for (Real& value : edges) value = finish(value);
    group.store_edges(edges, out, cover);
    if constexpr (!config.persistent) return;
    group.reuse();
  }
}

}  // namespace jitsoftmax::kernels
