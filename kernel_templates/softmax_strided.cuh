// strided: softmax along a dimension that is not the last, for any number of columns. The online
// recurrence in one pass, the result in a second: the rows are read twice.
#pragma once

#include "tile_group.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
strided(const Arguments arguments) {
  using Group = TileGroup<config, Columns, In, Out>;
  using Real = typename Group::Real;
  using Exp = Exponential<Real>;
  using Index = typename Columns::Index;
  static_assert(config.cluster == 1);
  static_assert(config.shared == tile_bytes(config, sizeof(Real)), "the launch has the shared memory of the plan");
  constexpr Index step = static_cast<Index>(Group::warps) * Group::columns;
  Group group(arguments);
  Real x[Group::rows][Group::columns];
  wait_for_predecessor(arguments);
  let_successor_start(arguments);

  Accumulator<Exp, Real, true> shares[Group::rows];
  for (Index first = 0; first < group.cols(); first += step) {
    group.load(x, first);
    for (int v = 0; v < Group::rows; ++v) shares[v].add(x[v]);
  }
  Partial<Real> parts[Group::rows];
  for (int v = 0; v < Group::rows; ++v) parts[v] = shares[v].partial();
  group.merge(parts);

  for (Index first = 0; first < group.cols(); first += step) {
    group.load(x, first);
    for (int v = 0; v < Group::rows; ++v) {
      const Finish<Op, Exp, Real> finish(parts[v], arguments.zero_masked != 0);
      for (Real& value : x[v]) value = finish(value);
    }
    group.store(x, first);
  }
}

}  // namespace jitsoftmax::kernels
