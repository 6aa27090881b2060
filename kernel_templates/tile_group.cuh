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
  static constexpr int tile_rows = warp_size * rows;
  static_assert(config.rows == warp_size && config.elements % rows == 0);
  static_assert(config.threads <= warp_size && power_of_two(config.threads) == config.threads);
  static_assert(rows <= config.threads, "a block has a thread for every row of its tile");
  static_assert(rows == 1 || config.aligned);
  static_assert(config.shared == tile_bytes(config, sizeof(Real)), "the launch has the shared memory of the plan");

  // The tile of this block. The lanes of rows that do not exist write nothing; they stay for the barriers.
  explicit TileGroup(const Arguments& arguments)
      : warp_(thread_index() / warp_size),
        lane_(thread_index() % warp_size),
        cols_(Columns::count(arguments)),
        inner_(arguments.inner),
        scale_(arguments.scale) {
    long long row = tile() * tile_rows + lane_ * rows;
    exists_ = row < arguments.rows;
    // A lane without rows reads the last ones too, which takes no test; nothing comes of it.
    if (!exists_) row = arguments.rows - rows;
    const long long outer = row / inner_;
    const long long offset = row % inner_ + first_column() * inner_;
    in_ = static_cast<const In*>(arguments.in) + outer * arguments.in_stride + offset;
    out_ = static_cast<Out*>(arguments.out) + outer * arguments.out_stride + offset;
  }

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

  Real scale() const { return scale_; }

  // Whether this thread has a column i from column `first` on.
  bool has(int i, Index first) const {
    if constexpr (Columns::is_known) {
      // Where all threads have it, that shall be known when the kernel is compiled.
      if (first + (i + 1) * warps <= cols_) return true;
    }
    return first + i * warps + first_column() < cols_;
  }

  // This thread's columns from column `first` on, as they are in memory: a packet has an element of each of its rows.
  using Packets = Packet<In, rows>[columns];
  void load_packets(Packets& packets, Index first) const {
    const In* from = in_ + first * inner_;
    for (int i = 0; i < columns; ++i) {
      if (has(i, first)) packets[i] = load_wide<In, rows>(from);
      from += warps * inner_;
    }
  }
  // The same as scaled numbers; -inf where there is none.
  void load(Real (&x)[rows][columns], Index first) const {
    Packets packets;
    load_packets(packets, first);
    for (int i = 0; i < columns; ++i) {
      Real column[rows];
      widen_packet(column, packets[i]);
      for (int v = 0; v < rows; ++v) x[v][i] = has(i, first) ? scale_ * column[v] : -infinity<Real>();
    }
  }

  // Writes this thread's columns from column `first` on; `result(column, i)` makes column i.
  template <class Result>
  void store_columns(Index first, const Result& result) const {
    if (!exists_) return;
    Out* to = out_ + first * inner_;
    for (int i = 0; i < columns; ++i) {
      Real column[rows];
      result(column, i);
      if (has(i, first)) store_wide(to, narrow_packet<Out, rows>(column));
      to += warps * inner_;
    }
  }
  void store(const Real (&x)[rows][columns], Index first) const {
    store_columns(first, [&](Real(&column)[rows], int i) {
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
    Partial<Real> whole = merged<config.threads>(warp_partials(), row, helper);
    if constexpr (config.cluster > 1) {
      cluster_wait();
      const int to_all = block_partials().offset(place(cluster_rank(), row));
      for (int to = helper; to < config.cluster; to += helpers) RemotePlace(to, to_all, merge_barrier()).send(whole);
      merge_barrier().wait_for_blocks();
      whole = merged<config.cluster>(block_partials(), row, helper);
    }
    if (helper == 0) warp_partials().store(place(0, row), whole);
    sync_block();
    for (int v = 0; v < rows; ++v) parts[v] = warp_partials().load(place(0, lane_ * rows + v));
  }

 private:
  static long long tile() { return block_index() / config.cluster; }
  Index first_column() const {
    if constexpr (config.cluster > 1) return cluster_rank() * config.threads + warp_;
    return warp_;
  }

  // Of `count` partials of a row, of which this helper takes its share.
  static constexpr int helpers = config.threads / rows;
  template <int count>
  static Partial<Real> merged(const SharedArray<Partial<Real>>& parts, int row, int helper) {
    constexpr int each = (count + helpers - 1) / helpers;
    Partial<Real> mine[each];
    for (int i = 0; i < each; ++i) {
      if (helper + i * helpers < count) mine[i] = parts.load(place(helper + i * helpers, row));
    }
    Real max = -infinity<Real>();
    for (int i = 0; i < each; ++i) max = maximum(max, mine[i].max);
    max = lane_max<helpers>(max);
    Real sum = 0;
    for (int i = 0; i < each; ++i) sum = sum + mine[i].sum_at(max);
    return {max, lane_sum<helpers>(sum)};
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
