// safe: three passes over a row. Maximum, sum, result: the row is read three times. The baseline
// that online softmax is measured against.
#pragma once

#include "row_group.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
safe(const Arguments arguments) {
  using Real = accumulator<In>;
  using Index = typename Columns::Index;
  constexpr Index step = static_cast<Index>(config.threads) * config.elements;
  const RowGroup<config, Columns, Real> group;

  const long long row = group.row(block_index());
  const bool live = row < arguments.rows;  // the last block can have rows to spare; its threads stay for the barriers
  const Index cols = live ? Columns::count(arguments) : 0;
  const In* in = static_cast<const In*>(arguments.in) + row * arguments.in_stride;
  Out* out = static_cast<Out*>(arguments.out) + row * arguments.out_stride;
  const bool wide_in = group.wide(in);
  const bool wide_out = group.wide(out);
  const Real scale = arguments.scale;
  Real x[config.elements];

  Real max = -infinity<Real>();
  for (Index first = 0; first < cols; first += step) {
    group.load(x, in, first, cols, scale, wide_in);
    max = maximum(max, tree_max<config.elements>(x));
  }
  const Real zero = anchor(group.max(max));

  CompensatedSum<Real> sum;
  for (Index first = 0; first < cols; first += step) {
    group.load(x, in, first, cols, scale, wide_in);
    for (Real& value : x) value = exponential(value - zero);
    sum.add(tree_sum<config.elements>(x));
  }
  const Real factor = Op::row_factor(group.sum(sum.sum), arguments.zero_masked != 0);

  for (Index first = 0; first < cols; first += step) {
    group.load(x, in, first, cols, scale, wide_in);
    for (Real& value : x) value = Op::result(Op::kept(value - zero, exponential(value - zero)), factor);
    group.store(x, out, first, cols, wide_out);
  }
}

}  // namespace jitsoftmax::kernels
