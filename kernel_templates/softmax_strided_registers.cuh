// strided_registers: softmax along a dimension that is not the last. A tile of rows stays in the
// registers of a block, or of a cluster of blocks, between its one read and its one write.
#pragma once

#include "tile_group.cuh"

namespace jitsoftmax::kernels {

// A thread's part of a tile as numbers: one exponential each.
template <class Group, class Op>
class TileNumbers {
 public:
  using Real = typename Group::Real;
  using Exp = Exponential<Real>;

  explicit TileNumbers(const Group& group) { group.load(x_, 0); }

  void partials(const Group&, Partial<Real> (&parts)[Group::rows]) {
    for (int v = 0; v < Group::rows; ++v) parts[v] = terms_[v].partial(x_[v]);
  }

  void store(const Group& group, const Finish<Op, Exp, Real> (&finish)[Group::rows]) {
    for (int v = 0; v < Group::rows; ++v) terms_[v].finish(x_[v], finish[v]);
    group.store(x_, 0);
  }

 private:
  Real x_[Group::rows][Group::columns];
  Terms<Op, Exp, Real> terms_[Group::rows];
};

// The same as the bits that were read, half as many registers for 16-bit types; the exponential is computed
// twice.
template <class Group, class Op>
class TilePackets {
 public:
  using Real = typename Group::Real;
  using Exp = Exponential<Real>;
  static constexpr int rows = Group::rows;

  explicit TilePackets(const Group& group) { group.load_packets(packets_, 0); }

  void partials(const Group& group, Partial<Real> (&parts)[rows]) {
    for (int i = 0; i < Group::columns; ++i) {
      Real column[rows];
      group.widen_column(column, packets_, i, 0);
      for (int v = 0; v < rows; ++v) parts[v].max = maximum(parts[v].max, column[v]);
    }
    forget_derived<0>();
    // Sums of a few terms each, for the error and for additions that do not wait for one another.
    constexpr int chunk = 8;
    Real sums[rows][(Group::columns + chunk - 1) / chunk] = {};
    for (int i = 0; i < Group::columns; ++i) {
      Real column[rows];
      group.widen_column(column, packets_, i, 0);
      for (int v = 0; v < rows; ++v) {
        Real& sum = sums[v][i / chunk];
        sum = sum + Exp::of(column[v] - anchor(parts[v].max));
      }
    }
    for (int v = 0; v < rows; ++v) parts[v].sum = tree_sum<(Group::columns + chunk - 1) / chunk>(sums[v]);
  }

  void store(const Group& group, const Finish<Op, Exp, Real> (&finish)[rows]) {
    forget_derived<1>();
    group.store_columns(0, [&](Real(&column)[rows], int i) {
      group.widen_column(column, packets_, i, 0);
      for (int v = 0; v < rows; ++v) column[v] = finish[v](column[v]);
    });
  }

 private:
  template <int turn>
  void forget_derived() {
    for (auto& packet : packets_) kernels::forget_derived<turn>(packet);
  }

  typename Group::Packets packets_;
};

template <bool packed, class Group, class Op>
struct HeldTile {
  using type = TileNumbers<Group, Op>;
};
template <class Group, class Op>
struct HeldTile<true, Group, Op> {
  using type = TilePackets<Group, Op>;
};

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
strided_registers(const Arguments arguments) {
  using Group = TileGroup<config, Columns, In, Out>;
  using Real = typename Group::Real;
  using Exp = Exponential<Real>;
  if (!Group::has_rows(arguments)) return;
  Group group(arguments);

  wait_for_predecessor(arguments);
  typename HeldTile<config.packed, Group, Op>::type tile(group);
  let_successor_start(arguments);
  group.prepare_to_merge();
  Partial<Real> parts[Group::rows];
  tile.partials(group, parts);
  group.merge(parts);

  Finish<Op, Exp, Real> finish[Group::rows];
  for (int v = 0; v < Group::rows; ++v) finish[v] = {parts[v], arguments.zero_masked != 0};
  tile.store(group, finish);
}

}  // namespace jitsoftmax::kernels
