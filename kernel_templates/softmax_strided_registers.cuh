// strided_registers: softmax along a dimension that is not the last. A tile of rows stays in the
// registers of a block, or of a cluster of blocks, between its one read and its one write.
#pragma once

#include "tile_group.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
strided_registers(const Arguments arguments) {
  using Group = TileGroup<config, Columns, In, Out>;
  using Real = typename Group::Real;
  using Exp = Exponential<Real>;
  if (!Group::has_rows(arguments)) return;
  const Group group(arguments);
  const Real scale = arguments.scale;

  Terms<Op, Exp, Real, config.elements> held;
  for (int i = 0; i < config.elements; ++i) held.x[i] = group.load(i, 0, scale);
  const Finish<Op, Exp, Real> finish(group.merge(held.partial()), arguments.zero_masked != 0);

  held.finish(finish);
  for (int i = 0; i < config.elements; ++i) group.store(i, 0, held.x[i]);
}

}  // namespace jitsoftmax::kernels
