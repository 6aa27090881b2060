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
  constexpr Index step = static_cast<Index>(Group::warps) * config.elements;
  if (!Group::has_rows(arguments)) return;
  const Group group(arguments);
  const Real scale = arguments.scale;
  Real x[config.elements];

  Accumulator<Exp, Real, true> share;
  for (Index first = 0; first < group.cols(); first += step) {
    for (int i = 0; i < config.elements; ++i) x[i] = group.load(i, first, scale);
    share.add(x);
  }
  const Finish<Op, Exp, Real> finish(group.merge(share.partial()), arguments.zero_masked != 0);

  for (Index first = 0; first < group.cols(); first += step) {
    for (int i = 0; i < config.elements; ++i) x[i] = group.load(i, first, scale);
    for (int i = 0; i < config.elements; ++i) group.store(i, first, finish(x[i]));
  }
}

}  // namespace jitsoftmax::kernels
