// Kernels that read a row once: what all of them do, whatever holds the row between its one read and
// its one write.
#pragma once

#include "row_group.cuh"
#include "stagger.cuh"

namespace jitsoftmax::kernels {

// Held takes this thread's packets of the row on construction, sums them up in partial(), and writes
// the results in store().
template <class Held, class Op, Config config, class Columns, class In, class Out>
void softmax_with_one_read(const Arguments& arguments) {
  using Real = accumulator<In>;
  using Exp = Exponential<Real>;
  using Index = typename Columns::Index;
  using Group = RowGroup<config, Columns, Real>;
  const Group group;

  const long long row = group.row(group.tile());
  const Index cols = Group::exists(row, arguments) ? Columns::count(arguments) : 0;
  const In* in = static_cast<const In*>(arguments.in) + row * arguments.in_stride;
  Out* out = static_cast<Out*>(arguments.out) + row * arguments.out_stride;
  const auto cover = group.cover(in, cols);
  const Real scale = arguments.scale;

  constexpr bool always = has_large_blocks(config, sizeof(In));
  wait_for_predecessor<always>(arguments);
  await_turn<config>(group.tile(), config.rows * Columns::count(arguments) * static_cast<long long>(sizeof(In)),
                     arguments);
  Held body(group, in + cover.head, cover, scale);
  let_successor_start<always>(arguments);
  group.prepare_to_merge();
  typename Group::Edges edges;
  group.load_edges(edges, in, cover, scale);

  Partial<Real> part = body.partial();
  if constexpr (Group::edges > 0) part = add_terms<Exp>(part, edges);
  if constexpr (config.low_latency) {
    part = group.merge_with_low_latency(part, [&](Real max) { body.relate_to(max); });
  } else {
    part = group.merge(part);
  }
  const Finish<Op, Exp, Real> finish(part, arguments.zero_masked != 0);

  body.store(group, out + cover.head, cover, finish);
  for (Real& x : edges) x = finish(x);
  group.store_edges(edges, out, cover);
}

}  // namespace jitsoftmax::kernels
