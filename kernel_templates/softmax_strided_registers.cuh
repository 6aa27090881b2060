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

  Terms<Op, Exp, Real, Group::columns> held[Group::rows];
  for (int i = 0; i < Group::columns; ++i) {
    Real column[Group::rows];
    group.load(column, i, 0);
    for (int v = 0; v < Group::rows; ++v) held[v].x[i] = column[v];
  }
  Partial<Real> parts[Group::rows];
  for (int v = 0; v < Group::rows; ++v) parts[v] = held[v].partial();
  group.merge(parts);

  for (int v = 0; v < Group::rows; ++v) held[v].finish({parts[v], arguments.zero_masked != 0});
  for (int i = 0; i < Group::columns; ++i) {
    Real column[Group::rows];
    for (int v = 0; v < Group::rows; ++v) column[v] = held[v].x[i];
    group.store(column, i, 0);
  }
}

}  // namespace jitsoftmax::kernels
