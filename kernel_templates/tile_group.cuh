// TileGroup: the threads that share a tile of rows whose elements are apart in memory and lie beside those
// of the other rows. How they cover the tile and how they agree on each row's maximum and sum.
#pragma once

#include "online.cuh"

namespace jitsoftmax::kernels {

// A tile has 32 times `vector` rows: lane l of every warp has the rows l * vector and following, so that an
// access of a warp is one contiguous piece. The `threads` warps of each of `cluster` blocks take the
// columns in turn, each thread `elements` / `vector` of them at a time.
template <Config config, class Columns, class In, class Out>
class TileGroup {
 public:
  using Real = accumulator<In>;
  using Index = typename Columns::Index;
  static constexpr int rows = config.vector;                       // of a thread
  static constexpr int columns = config.elements / config.vector;  // of a thread, at a time
  static constexpr int warps = config.threads * config.cluster;    // that share the tile
  // Columns of a thread, from its first on, that every thread has, if their number is known.
  static constexpr int whole_columns = Columns::is_known ? static_cast<int>(Columns::count({}) / warps) : 0;
  static constexpr int tile_rows = warp_size * rows;
  static_assert(config.rows == warp_size && config.elements % rows == 0);
  static_assert(config.threads <= warp_size && power_of_two(config.threads) == config.threads);
  static_assert(rows <= config.threads, "a block has a thread for every row of its tile");
  static_assert(rows == 1 || config.aligned);

  // The tile of this block. The lanes of rows that do not exist write nothing; they stay for the barriers.
  explicit TileGroup(const Arguments& arguments)
      : warp_(thread_index() / warp_size),
        lane_(thread_index() % warp_size),
        cols_(Columns::count(arguments)),
        inner_(arguments.inner),
        scale_(arguments.scale) {
    const long long row = tile() * tile_rows + lane_ * rows;
    exists_ = row < arguments.rows;
    const Start start = start_of<rows>(row, arguments);
    in_ = static_cast<const In*>(arguments.in) + start.slice * arguments.in_stride + start.offset;
    out_ = static_cast<Out*>(arguments.out) + start.slice * arguments.out_stride + start.offset;
  }

  // Where `count` rows begin, from the tile's row `first` on, at the column that is this warp's first.
  template <int count>
  static const In* input_of(int first, const Arguments& arguments) {
    const Start start = start_of<count>(tile() * tile_rows + first, arguments);
    return static_cast<const In*>(arguments.in) + start.slice * arguments.in_stride + start.offset;
  }
  // From one of this thread's columns to the next.
  long long step() const { return warps * inner_; }

  // Before merge(), by every thread of the block; best while the loads of the tile are under way.
  void prepare_to_merge() const {
    if constexpr (config.cluster > 1) {
      if (thread_index() == barrier_thread) {
        merge_barrier().init();
        merge_barrier().expect(config.cluster * tile_rows * static_cast<int>(sizeof(Partial<Real>)));
        publish_barriers();
      }
      cluster_arrive();  // waited for in merge()
    }
  }

  // Columns of a row.
  Index cols() const { return cols_; }
  // Of the tile.
  static long long tile() { return block_index() / config.cluster; }
  long long bytes() const { return tile_rows * cols_ * static_cast<long long>(sizeof(In)); }

  Real scale() const { return scale_; }

  // Whether this thread has a column i from column `first` on.
  bool has(int i, Index first) const {
    // Where all threads have it, that shall be known when the kernel is compiled.
    if constexpr (Columns::is_known) {
      if constexpr (Columns::count({}) == columns * warps) return true;
      if (first + (i + 1) * warps <= cols_) return true;
    }
    return first + i * warps + first_column() < cols_;
  }

  // This thread's columns from column `first` on, as they are in memory: a packet has an element of each of its rows.
  using Packet = kernels::Packet<In, rows>;
  template <Lines lines = Lines::stay, int count>
  void load_packets(Packet (&packets)[count], Index first) const {
    const In* from = in_ + first * inner_;
    for (int i = 0; i < count; ++i) {
      if (has(i, first)) packets[i] = load_wide<In, rows, lines>(from);
      from += step();
    }
  }
  // The same as scaled numbers; -inf where there is none.
  void load(Real (&x)[rows][columns], Index first) const {
    Packet packets[columns];
    load_packets(packets, first);
    for (int i = 0; i < columns; ++i) {
      Real column[rows];
      widen_packet(column, packets[i]);
      for (int v = 0; v < rows; ++v) x[v][i] = has(i, first) ? scale_ * column[v] : -infinity<Real>();
    }
  }

  // Where this thread's columns from column `first` on are written.
  Out* output(Index first) const { return out_ + first * inner_; }

  // Writes `count` of this thread's columns from column `first` on, which is at `to`; that is then where the next one
  // is. `result(column, i)` makes column i.
  template <int count, class Result>
  void store_columns(Out*& to, Index first, const Result& result) const {
    if (!exists_) return;
    for (int i = 0; i < count; ++i) {
      Real column[rows];
      result(column, i);
      if (has(i, first)) store_wide(to, narrow_packet<Out, rows>(column));
      to += step();
    }
  }
  void store(const Real (&x)[rows][columns], Index first) const {
    Out* to = output(first);
    store_columns<columns>(to, first, [&](Real(&column)[rows], int i) {
      for (int v = 0; v < rows; ++v) column[v] = x[v][i];
    });
  }

  // Agreement on each of this thread's rows; every thread of the block calls, once a kernel. `helpers`
  // neighbouring threads merge the partials of one row.
  void merge(Partial<Real> (&parts)[rows]) {
    forget_derived(inner_);  // the places of what was read are not kept for the writes
    if constexpr (warps == 1) return;
    for (int v = 0; v < rows; ++v) warp_partials().store(place(warp_, lane_ * rows + v), parts[v]);
    sync_block();
    const int row = thread_index() / helpers;
    const int helper = thread_index() % helpers;
    Partial<Real> whole = merged<config.threads, helpers>(warp_partials(), row, helper);
    if constexpr (config.cluster > 1) {
      constexpr int sharing = config.cluster <= 4 ? 1 : helpers;  // of few each takes all, and waits for no other lane
      cluster_wait();
      const int to_all = block_partials().offset(place(cluster_rank(), row));
      for (int to = helper; to < config.cluster; to += helpers) RemotePlace(to, to_all, merge_barrier()).send(whole);
      merge_barrier().wait_for_blocks();
      whole = merged<config.cluster, sharing>(block_partials(), row, helper);
    }
    if (helper == 0) warp_partials().store(place(0, row), whole);
    sync_block();
    for (int v = 0; v < rows; ++v) parts[v] = warp_partials().load(place(0, lane_ * rows + v));
  }

 private:
  // Of rows that are neighbours: the slice that they are in, and the elements before them at this warp's first column.
  struct Start {
    long long slice;
    long long offset;
  };
  // Rows that do not exist are the last ones that do, which takes no test where they are read; nothing comes of it.
  template <int count>
  static Start start_of(long long row, const Arguments& arguments) {
    if (row >= arguments.rows) row = arguments.rows - count;
    long long slice = 0;
    if (row >= arguments.inner) {  // the first slice, often the only one, takes no division
      slice = row / arguments.inner;
      row = row % arguments.inner;
    }
    return {slice, row + first_column() * arguments.inner};
  }
  static Index first_column() {
    const int warp = thread_index() / warp_size;
    if constexpr (config.cluster > 1) return cluster_rank() * config.threads + warp;
    return warp;
  }

  // Of `count` partials of a row, of which each of `sharing` helpers takes its share.
  static constexpr int helpers = config.threads / rows;
  template <int count, int sharing>
  static Partial<Real> merged(const SharedArray<Partial<Real>>& parts, int row, int helper) {
    constexpr int each = (count + sharing - 1) / sharing;
    const int from = helper % sharing;
    Partial<Real> mine[each];
    for (int i = 0; i < each; ++i) {
      if (from + i * sharing < count) mine[i] = parts.load(place(from + i * sharing, row));
    }
    Real max = -infinity<Real>();
    for (int i = 0; i < each; ++i) max = maximum(max, mine[i].max);
    max = lane_max<sharing>(max);
    Real sum = 0;
    for (int i = 0; i < each; ++i) sum = sum + mine[i].sum_at(max);
    return {max, lane_sum<sharing>(sum)};
  }
  // Of a row's partial that `from` has: apart from each other by an odd number, for helpers to reach theirs
  // in different banks.
  static int place(int from, int row) { return from * tile_partials(config) + row; }
  static constexpr int real_bytes = static_cast<int>(sizeof(Real));
  static SharedArray<Partial<Real>> warp_partials() { return SharedArray<Partial<Real>>(0); }
  static SharedArray<Partial<Real>> block_partials() {
    return SharedArray<Partial<Real>>(tile_block_partials_at(config, real_bytes));
  }
  static CopyBarrier merge_barrier() { return CopyBarrier(tile_barrier_at(config, real_bytes)); }

  int warp_;
  int lane_;
  bool exists_;
  Index cols_;
  long long inner_;
  const In* in_;
  Out* out_;
  Real scale_;
};

}  // namespace jitsoftmax::kernels
