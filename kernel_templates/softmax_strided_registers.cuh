// strided_registers: softmax along a dimension that is not the last. A tile of rows stays in the
// registers of a block, or of a cluster of blocks, between its one read and its one write.
#pragma once

#include "stagger.cuh"
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
    scale_ = take_sign_of_scale(packets_, group.scale(), [&](int i) { return group.has(i, 0); });
    Real maxima[rows];
    widen_packet(maxima, tree_max<Group::columns>(packets_));
    for (Real& max : maxima) max = scaled_maximum(max, scale_);
    // Sums of a few terms each, for the error and for additions that do not wait for one another.
    constexpr int chunk = 16;
    constexpr int chunks = (Group::columns + chunk - 1) / chunk;
    Real sums[rows][chunks] = {};
    JITSOFTMAX_UNROLL
    for (int i = 0; i < Group::columns; ++i) {
      Real column[rows];
      widen_packet(column, packets_[i]);
      for (int v = 0; v < rows; ++v) {
        const Real term = Exp::of(scale_ * column[v] - anchor(maxima[v]));
        Real& sum = sums[v][i / chunk];
        sum = sum + (group.has(i, 0) ? term : Real(0));
      }
    }
    for (int v = 0; v < rows; ++v) parts[v] = {maxima[v], tree_sum<chunks>(sums[v])};
  }

  void store(const Group& group, const Finish<Op, Exp, Real> (&finish)[rows]) {
    for (auto& packet : packets_) forget_derived(packet);
    auto* to = group.output(0);
    group.template store_columns<Group::columns>(to, 0, [&](Real(&column)[rows], int i) {
      widen_packet(column, packets_[i]);
      for (int v = 0; v < rows; ++v) column[v] = finish[v](scale_ * column[v]);
    });
  }

 private:
  typename Group::Packet packets_[Group::columns];
  Real scale_ = 1;
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
  static_assert(config.shared == tile_bytes(config, sizeof(Real)), "the launch has the shared memory of the plan");
  Group group(arguments);

  constexpr bool always = has_large_blocks(config, sizeof(In));
  wait_for_predecessor<always>(arguments);
  await_turn<config>(Group::tile(), group.bytes(), arguments);
  typename HeldTile<config.packed, Group, Op>::type tile(group);
  let_successor_start<always>(arguments);
  group.prepare_to_merge();
  Partial<Real> parts[Group::rows];
  tile.partials(group, parts);
  group.merge(parts);

  Finish<Op, Exp, Real> finish[Group::rows];
  for (int v = 0; v < Group::rows; ++v) finish[v] = {parts[v], arguments.zero_masked != 0};
  tile.store(group, finish);
}

}  // namespace jitsoftmax::kernels
