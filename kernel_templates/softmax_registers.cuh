// registers: the row stays in registers between its one read and its one write. Short rows take a
// part of a warp, several rows a block. The lesson's v3 is a point of it.
#pragma once

#include "row_group.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
registers(const Arguments arguments) {
  using Real = accumulator<In>;
  using Index = typename Columns::Index;
  const RowGroup<config, Columns, Real> group;

  const long long row = group.row(block_index());
  const bool live = row < arguments.rows;
  const Index cols = live ? Columns::count(arguments) : 0;
  const In* in = static_cast<const In*>(arguments.in) + row * arguments.in_stride;
  Out* out = static_cast<Out*>(arguments.out) + row * arguments.out_stride;

  Real x[config.elements];
  group.load(x, in, Index(0), cols, Real(arguments.scale), group.wide(in));

  const Real zero = anchor(group.max(tree_max<config.elements>(x)));
  Real terms[config.elements];
  for (int i = 0; i < config.elements; ++i) {
    terms[i] = exponential(x[i] - zero);
    x[i] = Op::kept(x[i] - zero, terms[i]);
  }
  const Real factor = Op::row_factor(group.sum(tree_sum<config.elements>(terms)), arguments.zero_masked != 0);

  for (Real& value : x) value = Op::result(value, factor);
  group.store(x, out, Index(0), cols, group.wide(out));
}

}  // namespace jitsoftmax::kernels
