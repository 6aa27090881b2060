// RowGroup: the threads of a block that share a row. How they cover it and how they agree on its
// maximum and sum.
#pragma once

#include "online.cuh"

namespace jitsoftmax::kernels {

// The elements of a row in the order of the packets: thread t of the group takes the packets
// t, t + threads, t + 2 * threads, ... The mapping depends on the Config and the number of columns
// alone, never on an address, so that a row has the same bits at every alignment.
template <Config config, class Columns, class Real>
class RowGroup {
 public:
  using Index = typename Columns::Index;
  static constexpr int warps = config.threads / warp_size;  // of a group; 0 if it is part of a warp
  static_assert(config.threads > 0 && config.rows > 0 && config.vector > 0);
  static_assert(config.elements % config.vector == 0);
  static_assert(config.threads % warp_size == 0 || (config.threads < warp_size && warp_size % config.threads == 0));
  static_assert(config.threads * config.rows % warp_size == 0, "warps are whole: shuffles need every lane");
  static_assert(warps <= warp_size, "one warp merges the partials of all");
  static_assert(config.shared == merge_bytes(config, sizeof(Real)), "the launch has the shared memory of the plan");

  RowGroup() : thread_(thread_index() % config.threads), row_(thread_index() / config.threads) {}

  int thread() const { return thread_; }

  // The row of this group in the block's `step`-th tile of rows.
  long long row(long long tile) const { return tile * config.rows + row_; }

  // `count` packets of this thread from packet `first` on, as scaled numbers; -inf beyond the end.
  template <int count, class In>
  void load(Real (&x)[count], const In* row, Index first, Index cols, Real scale, bool wide) const {
    static_assert(count % config.vector == 0);
    for (int k = 0; k < count / config.vector; ++k) {
      const Index at = first + static_cast<Index>(k * config.threads + thread_) * config.vector;
      if (wide && at + config.vector <= cols) {
        const auto packet = load_wide<In, config.vector>(row + at);
        for (int i = 0; i < config.vector; ++i) x[k * config.vector + i] = scale * widen(packet.at[i]);
      } else if constexpr (only_wide) {
        for (int i = 0; i < config.vector; ++i) x[k * config.vector + i] = -infinity<Real>();
      } else {
        for (int i = 0; i < config.vector; ++i) {
          x[k * config.vector + i] = at + i < cols ? scale * widen(row[at + i]) : -infinity<Real>();
        }
      }
    }
  }

  template <int count, class Out>
  void store(const Real (&x)[count], Out* row, Index first, Index cols, bool wide) const {
    for (int k = 0; k < count / config.vector; ++k) {
      const Index at = first + static_cast<Index>(k * config.threads + thread_) * config.vector;
      if (wide && at + config.vector <= cols) {
        Packet<Out, config.vector> packet;
        for (int i = 0; i < config.vector; ++i) packet.at[i] = narrow<Out>(x[k * config.vector + i]);
        store_wide<Out, config.vector>(row + at, packet);
      } else if constexpr (!only_wide) {
        for (int i = 0; i < config.vector; ++i) {
          if (at + i < cols) row[at + i] = narrow<Out>(x[k * config.vector + i]);
        }
      }
    }
  }

  // Whether whole packets of the row can be moved in one access.
  template <class T>
  static bool wide(const T* row) {
    return config.aligned || config.vector == 1 || is_aligned(row, static_cast<int>(sizeof(T)) * config.vector);
  }

  // Agreement of the whole group; every thread of the block calls. A slot of shared memory is
  // written once between two calls of `reuse`.
  Real max(Real value) const {
    value = warp_max(value);
    if constexpr (warps > 1) {
      publish(max_slots(), value);
      sync_block();
      value = warp_max(collect(max_slots(), -infinity<Real>()));
    }
    return value;
  }

  Real sum(Real value) const {
    value = warp_sum(value);
    if constexpr (warps > 1) {
      publish(sum_slots(), value);
      sync_block();
      value = warp_sum(collect(sum_slots(), Real(0)));
    }
    return value;
  }

  Partial<Real> merge(Partial<Real> part) const {
    part = warp_merge(part);
    if constexpr (warps > 1) {
      publish(max_slots(), part.max);
      publish(sum_slots(), part.sum);
      sync_block();
      part = warp_merge({collect(max_slots(), -infinity<Real>()), collect(sum_slots(), Real(0))});
    }
    return part;
  }

  // Before the group agrees again on something that it has already agreed on.
  static void reuse() {
    if constexpr (warps > 1) sync_block();
  }

 private:
  // No packet is ever cut: by an address or by the end of the row.
  static constexpr bool only_wide = config.aligned && Columns::template whole_packets<config.vector>;
  static constexpr int lanes = config.threads < warp_size ? config.threads : warp_size;

  Real warp_max(Real value) const {
    for (int mask = lanes / 2; mask > 0; mask /= 2) value = maximum(value, shuffle_xor(value, mask));
    return value;
  }
  Real warp_sum(Real value) const {
    for (int mask = lanes / 2; mask > 0; mask /= 2) value = value + shuffle_xor(value, mask);
    return value;
  }
  // The maximum first: one exponential a lane instead of two a step.
  Partial<Real> warp_merge(Partial<Real> part) const {
    const Real max = warp_max(part.max);
    return {max, warp_sum(part.sum_at(max))};
  }

  // One slot a warp for the maximum and one for the sum.
  static SharedArray<Real> max_slots() { return SharedArray<Real>(0); }
  static SharedArray<Real> sum_slots() {
    return SharedArray<Real>(config.rows * warps * static_cast<int>(sizeof(Real)));
  }

  void publish(SharedArray<Real> slots, Real value) const {
    if (thread_ % warp_size == 0) slots.store(row_ * warps + thread_ / warp_size, value);
  }
  Real collect(SharedArray<Real> slots, Real nothing) const {
    const int lane = thread_ % warp_size;
    return lane < warps ? slots.load(row_ * warps + lane) : nothing;
  }

  int thread_;
  int row_;
};

}  // namespace jitsoftmax::kernels
