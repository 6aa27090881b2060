// safe: three passes over a row. Maximum, sum, result: the row is read three times. The baseline
// that online softmax is measured against.
#pragma once

#include "row_group.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
safe(const Arguments arguments) {
  using Real = accumulator<In>;
  using Exp = Exponential<Real>;
  using Index = typename Columns::Index;
  static_assert(config.shared == merge_bytes(config, sizeof(Real)), "the launch has the shared memory of the plan");
  using Group = RowGroup<config, Columns, Real>;
  constexpr Index step = Group::threads * (config.elements / config.vector);  // packets
  const Group group;

  const long long row = group.row(group.tile());
  const bool live = row < arguments.rows;  // the last block can have rows to spare; it stays for the barriers
  const Index cols = live ? Columns::count(arguments) : 0;
  const In* in = static_cast<const In*>(arguments.in) + row * arguments.in_stride;
  Out* out = static_cast<Out*>(arguments.out) + row * arguments.out_stride;
  const auto cover = group.cover(in, cols);
  const Real scale = arguments.scale;
  Real x[config.elements];
  typename Group::Edges edges;
  wait_for_predecessor(arguments);
  let_successor_start(arguments);

  group.load_edges(edges, in, cover, scale);

  Real max = tree_max<sizeof(edges) / sizeof(Real)>(edges);
  for (Index first = 0; first < cover.packets; first += step) {
    group.load(x, in + cover.head, first, cover, scale);
    max = maximum(max, tree_max<config.elements>(x));
  }
  max = group.max(max);
  const Real zero = anchor(max);

  CompensatedSum<Real> sum;
  for (Index first = 0; first < cover.packets; first += step) {
    group.load(x, in + cover.head, first, cover, scale);
    for (Real& value : x) value = Exp::of(value - zero);
    sum.add(tree_sum<config.elements>(x));
  }
  for (const Real value : edges) sum.add(Exp::of(value - zero));
  const Finish<Op, Exp, Real> finish({max, group.sum(sum.sum)}, arguments.zero_masked != 0);

  for (Index first = 0; first < cover.packets; first += step) {
    group.load(x, in + cover.head, first, cover, scale);
    for (Real& value : x) value = finish(value);
    group.store(x, out + cover.head, first, cover);
  }
  for (Real& value : edges) value = finish(value);
  group.store_edges(edges, out, cover);
}

}  // namespace jitsoftmax::kernels
