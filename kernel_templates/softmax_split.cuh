// split: a row is shared by a gang of blocks, of which as many rows are under way as the device has room for.
// For rows that no cluster holds, and for devices without clusters. A row that the gang's threads hold
// is read once; of a longer one, what they hold last.
#pragma once

#include "gang.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
split(const Arguments arguments) {
  using Real = accumulator<In>;
  using Exp = Exponential<Real>;
  using Index = typename Columns::Index;
  using Group = RowGroup<config, PartOf<Columns>, Real>;
  static_assert(config.rows == 1 && config.cluster == 1 && config.blocked);
  static_assert(config.shared == merge_bytes(config, sizeof(Real)), "the launch has the shared memory of the plan");
  constexpr Index step = Group::threads * (config.elements / config.vector);  // packets
  const Group group;
  const Real scale = arguments.scale;
  wait_for_predecessor(arguments);
  let_successor_start(arguments);
  Gang<Real> gang(arguments);

  for (long long row = gang.number(); row < arguments.rows; row += gang.count()) {
    const In* in = static_cast<const In*>(arguments.in) + row * arguments.in_stride;
    Out* out = static_cast<Out*>(arguments.out) + row * arguments.out_stride;
    auto cover = group.cover(in, Columns::count(arguments));
    const auto part = gang.part(cover.packets);
    cover.own = part.count;
    if (!part.has_edges) cover.edges = 0;
    const Index body = cover.head + part.first * config.vector;
    Real x[config.elements];
    typename Group::Edges edges;

    Accumulator<Exp, Real, true> share;
    Index first = 0;
    group.load(x, in + body, first, cover, scale);
    group.load_edges(edges, in, cover, scale);
    share.add(x);
    if constexpr (Group::edges > 0) share.add(edges);
    while (first + step < cover.own) {
      first += step;
      group.load(x, in + body, first, cover, scale);
      share.add(x);
    }
    const Finish<Op, Exp, Real> finish(gang.merge(group, group.merge(share.partial())), arguments.zero_masked != 0);

    // Backwards: the last elements are still there.
    for (;;) {
      for (Real& value : x) value = finish(value);
      group.store(x, out + body, first, cover);
      if (first == 0) break;
      first -= step;
      group.load(x, in + body, first, cover, scale);
    }
    for (Real& value : edges) value = finish(value);
    group.store_edges(edges, out, cover);
    group.reuse();
  }
  gang.leave();
}

}  // namespace jitsoftmax::kernels
