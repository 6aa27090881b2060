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
  Group group(arguments);

  Real x[Group::rows][Group::columns];
  group.load(x, 0);
  group.prepare_to_merge();
  Terms<Op, Exp, Real> terms[Group::rows];
  Partial<Real> parts[Group::rows];
  for (int v = 0; v < Group::rows; ++v) parts[v] = terms[v].partial(x[v]);
  group.merge(parts);

  for (int v = 0; v < Group::rows; ++v) terms[v].finish(x[v], {parts[v], arguments.zero_masked != 0});
  group.store(x, 0);
}

}  // namespace jitsoftmax::kernels
