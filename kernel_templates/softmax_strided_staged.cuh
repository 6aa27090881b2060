// strided_staged: softmax along a dimension that is not the last. The columns of a tile wait between their one read and
// their one write in the registers and in the shared memory of whole multiprocessors, and are summed up as they
// arrive.
#pragma once

#include "tile_group.cuh"

namespace jitsoftmax::kernels {

// Columns of a thread that wait in shared memory, in pieces. A warp copies its own, 16 bytes a lane.
template <Config config, class Group, class In>
class StagedColumns {
 public:
  using Packet = typename Group::Packet;
  static constexpr int columns = config.pieces * staged_columns;  // of a thread
  static constexpr int before = Group::columns - columns;         // of a thread, in registers
  static constexpr int sure = Group::whole_columns - before < 0 ? 0 : (Group::whole_columns - before) / staged_columns;
  // Pieces that every thread has, if the number of columns is known.
  static constexpr int whole_pieces = sure < config.pieces ? sure : config.pieces;

  StagedColumns(const Group& group, const Arguments& arguments) : group_(group) {
    const int lane = thread_index() % warp_size;
    column_ = lane / lanes;
    from_ = Group::template input_of<rows_of_copy>(lane % lanes * rows_of_copy, arguments) +
            (before + column_) * group.step();
  }

  // Starts the copies of a piece, if there is one, and ends their group.
  void start(int piece) {
    if (piece < config.pieces) {
      for (int i = 0; i < staged_columns; i += columns_at_once) {
        const int column = piece * staged_columns + i + column_;
        if (piece < whole_pieces || group_.has(before + column, 0)) {
          start_copy(offset(column) + thread_index() % lanes * copy_bytes, from_);
        }
        from_ += columns_at_once * group_.step();
      }
    }
    close_copies();
  }
  // Until all pieces have arrived but the `newest` groups.
  template <int newest>
  static void wait() {
    wait_for_copies<newest>();
    sync_warp();  // other lanes have copied what this one reads
  }
  static void load(Packet (&packets)[staged_columns], int piece) {
    for (int i = 0; i < staged_columns; ++i) {
      packets[i] = SharedArray<Packet>(offset(piece * staged_columns + i)).load(thread_index() % warp_size);
    }
  }

 private:
  static constexpr int column_bytes = tile_column_bytes(config, sizeof(In));
  static constexpr int rows_of_copy = copy_bytes / static_cast<int>(sizeof(In));
  static constexpr int lanes = column_bytes / copy_bytes;  // that copy a column
  static constexpr int columns_at_once = warp_size / lanes;
  static_assert(staged_columns % columns_at_once == 0);

  // Where a column of this warp waits.
  static int offset(int column) {
    const int warp = thread_index() / warp_size;
    return tile_columns_at(config, sizeof(typename Group::Real)) + (warp * columns + column) * column_bytes;
  }

  const Group& group_;
  int column_;  // that this lane copies, of those at once
  const In* from_;
};

// The partials of a thread's rows, to which columns are added as they arrive.
template <class Group>
class TileSums {
 public:
  using Real = typename Group::Real;
  using Exp = Exponential<Real>;
  static constexpr int rows = Group::rows;
  using Partials = Partial<Real>[rows];

  explicit TileSums(Real scale) : scale_(scale) {}

  // `has(i)`: whether there is packet i.
  template <int count, class Has>
  void add(const typename Group::Packet (&packets)[count], const Has& has) {
    Real x[rows][count];
    JITSOFTMAX_UNROLL
    for (int i = 0; i < count; ++i) {
      Real column[rows];
      widen_packet(column, packets[i]);
      for (int v = 0; v < rows; ++v) x[v][i] = has(i) ? scale_ * column[v] : -infinity<Real>();
    }
    for (int v = 0; v < rows; ++v) {
      const Real max = maximum(parts_[v].max, tree_max<count>(x[v]));
      // Seldom, but for the first ones.
      if (max > parts_[v].max) parts_[v] = {max, parts_[v].sum_at(max)};
      parts_[v].sum = parts_[v].sum + sum_of_terms<Exp>(x[v], max);
    }
  }

  Partials& partials() { return parts_; }

 private:
  Real scale_;
  Partials parts_;
};

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
strided_staged(const Arguments arguments) {
  using Group = TileGroup<config, Columns, In, Out>;
  using Real = typename Group::Real;
  using Packet = typename Group::Packet;
  using Staged = StagedColumns<config, Group, In>;
  static_assert(config.shared == staged_tile_bytes(config, sizeof(Real), sizeof(In)),
                "the launch has the shared memory of the plan");
  constexpr int rows = Group::rows;
  constexpr int ahead = 3;  // pieces under way
  constexpr int held = Staged::before;
  constexpr int first_half = held / 2;
  Group group(arguments);
  Staged staged(group, arguments);

  constexpr bool always = has_large_blocks(config, sizeof(In));
  wait_for_predecessor<always>(arguments);
  Packet packets[held];
  group.template load_packets<Lines::leave_first>(packets, 0);
  let_successor_start<always>(arguments);
  group.prepare_to_merge();

  // As much is under way as the memory takes to be busy, and no more: what comes first is summed up first.
  TileSums<Group> sums(group.scale());
  const auto add_held = [&](auto& some, int from) {
    int next = from;
    for (Packet& packet : some) packet = packets[next++];
    sums.add(some, [&](int i) { return group.has(from + i, 0); });
  };
  staged.start(0);
  Packet some[first_half];
  add_held(some, 0);
  staged.start(1);
  Packet others[held - first_half];
  add_held(others, first_half);
  staged.start(2);
  for (int piece = 0; piece < config.pieces; ++piece) {
    Staged::template wait<ahead - 1>();
    Packet columns[staged_columns];
    Staged::load(columns, piece);
    staged.start(piece + ahead);
    sums.add(columns,
             [&](int i) { return piece < Staged::whole_pieces || group.has(held + piece * staged_columns + i, 0); });
  }
  group.merge(sums.partials());

  Finish<Op, Exponential<Real>, Real> finish[rows];
  for (int v = 0; v < rows; ++v) finish[v] = {sums.partials()[v], arguments.zero_masked != 0};
  const auto result = [&](Real(&column)[rows], const Packet& packet) {
    widen_packet(column, packet);
    for (int v = 0; v < rows; ++v) column[v] = finish[v](group.scale() * column[v]);
  };
  Out* to = group.output(held * Group::warps);
  for (int piece = 0; piece < config.pieces; ++piece) {
    Packet columns[staged_columns];
    Staged::load(columns, piece);
    group.template store_columns<staged_columns>(to, (held + piece * staged_columns) * Group::warps,
                                                 [&](Real(&column)[rows], int i) { result(column, columns[i]); });
  }
  for (auto& packet : packets) forget_derived(packet);
  to = group.output(0);
  group.template store_columns<held>(to, 0, [&](Real(&column)[rows], int i) { result(column, packets[i]); });
}

}  // namespace jitsoftmax::kernels
