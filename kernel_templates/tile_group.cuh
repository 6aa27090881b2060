// TileGroup: the threads that share a tile of 32 rows whose elements are apart in memory, and lie beside
// those of the other rows. How they cover the tile and how they agree on each row's maximum and sum.
#pragma once

#include "online.cuh"

namespace jitsoftmax::kernels {

// Lane l of every warp has row l of the tile, so that an access of a warp is one contiguous piece. The
// `threads` warps of each of `cluster` blocks take the columns in turn.
template <Config config, class Columns, class In, class Out>
class TileGroup {
 public:
  using Real = accumulator<In>;
  using Index = typename Columns::Index;
  static constexpr int warps = config.threads * config.cluster;
  static_assert(config.rows == warp_size && config.vector == 1);
  static_assert(config.shared == tile_bytes(config, sizeof(Real)), "the launch has the shared memory of the plan");

  // Whether the tile has rows at all; a grid of two dimensions can have tiles to spare.
  static bool has_rows(const Arguments& arguments) { return tile() * config.rows < arguments.rows; }

  // The tile of this block. The lanes of rows that do not exist have no columns; they stay for the barriers.
  explicit TileGroup(const Arguments& arguments)
      : warp_(thread_index() / warp_size), lane_(thread_index() % warp_size), inner_(arguments.inner) {
    if constexpr (config.cluster > 1) {
      if (thread_index() == 0) {
        merge_barrier().init();
        merge_barrier().expect(config.cluster * warp_size * static_cast<int>(sizeof(Partial<Real>)));
        publish_barriers();
      }
      cluster_arrive();  // waited for in merge()
    }
    const long long row = tile() * config.rows + lane_;
    cols_ = row < arguments.rows ? Columns::count(arguments) : 0;
    const long long outer = row / inner_;
    const long long offset = row % inner_ + first_column() * inner_;
    in_ = static_cast<const In*>(arguments.in) + outer * arguments.in_stride + offset;
    out_ = static_cast<Out*>(arguments.out) + outer * arguments.out_stride + offset;
  }

  // Columns of the row.
  Index cols() const { return cols_; }

  // This thread's element i from column `first` on, as a scaled number; -inf where there is none.
  Real load(int i, Index first, Real scale) const {
    return has(i, first) ? scale * widen(in_[offset(i, first)]) : -infinity<Real>();
  }
  void store(int i, Index first, Real x) const {
    if (has(i, first)) out_[offset(i, first)] = narrow<Out>(x);
  }

  // Agreement on the row of this lane; every thread of the block calls, once a kernel.
  Partial<Real> merge(Partial<Real> part) const {
    if constexpr (config.threads > 1) {
      warp_partials().store(warp_ * warp_size + lane_, part);
      sync_block();
      part = merged<config.threads>(warp_partials());
    }
    if constexpr (config.cluster > 1) {
      cluster_wait();
      for (int to = warp_; to < config.cluster; to += config.threads) {
        send_to_block(to, block_partials().offset(cluster_rank() * warp_size + lane_), part, merge_barrier());
      }
      merge_barrier().wait();
      part = merged<config.cluster>(block_partials());
    }
    return part;
  }

 private:
  static long long tile() { return block_index() / config.cluster; }
  Index first_column() const {
    if constexpr (config.cluster > 1) return cluster_rank() * config.threads + warp_;
    return warp_;
  }
  // Relative to this thread's first element.
  bool has(int i, Index first) const {
    // True for every thread where that is known when the kernel is compiled.
    return first + (i + 1) * warps <= cols_ || first + i * warps + first_column() < cols_;
  }
  long long offset(int i, Index first) const { return (static_cast<long long>(first) + i * warps) * inner_; }

  // The maximum first: one exponential a partial instead of two.
  template <int count>
  Partial<Real> merged(const SharedArray<Partial<Real>>& parts) const {
    Real max = -infinity<Real>();
    JITSOFTMAX_ROLLED
    for (int i = 0; i < count; ++i) max = maximum(max, parts.load(i * warp_size + lane_).max);
    Real sum = 0;
    JITSOFTMAX_ROLLED
    for (int i = 0; i < count; ++i) sum = sum + parts.load(i * warp_size + lane_).sum_at(max);
    return {max, sum};
  }

  static constexpr int real_bytes = static_cast<int>(sizeof(Real));
  static SharedArray<Partial<Real>> warp_partials() { return SharedArray<Partial<Real>>(0); }
  static SharedArray<Partial<Real>> block_partials() {
    return SharedArray<Partial<Real>>(tile_block_partials_at(config, real_bytes));
  }
  static CopyBarrier merge_barrier() { return CopyBarrier(tile_barrier_at(config, real_bytes)); }

  int warp_;
  int lane_;
  Index cols_;
  long long inner_;
  const In* in_;
  Out* out_;
};

}  // namespace jitsoftmax::kernels
