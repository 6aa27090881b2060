// RowGroup: the threads that share a row, of one block or of a cluster of blocks. How they cover it
// and how they agree on its maximum and sum.
#pragma once

#include "online.cuh"

namespace jitsoftmax::kernels {

// A row is a body of whole packets between two edges of less than a packet. Each block of a cluster has its part
// of the body, of whose packets thread t has t, t + threads, t + 2 * threads, ... The edges are taken element by
// element by the first threads of the group. Unless the Config is peeled the
// body begins with the row, and the mapping depends on the Config and the number of columns alone,
// never on an address: a row has the same bits at every alignment.
template <Config config, class Columns, class Real>
class RowGroup {
 public:
  using Index = typename Columns::Index;
  static constexpr int width = config.vector;
  static constexpr int threads = config.threads * config.cluster;
  static constexpr int warps = config.threads / warp_size;  // of a block; 0 if the group is a part of a warp
  static_assert(config.threads > 0 && config.rows > 0 && width > 0);
  static_assert(config.elements % width == 0);
  static_assert(config.threads % warp_size == 0 || (config.threads < warp_size && warp_size % config.threads == 0));
  static_assert(config.threads * config.rows % warp_size == 0, "warps are whole: shuffles need every lane");
  static_assert(config.cluster == 1 || (config.rows == 1 && config.cluster <= warp_size && warps > 0));
  static_assert(warps <= warp_size, "a block has at most 32 warps");
  static_assert(!(config.aligned && config.peeled));
  static_assert(!config.low_latency || (config.cluster > 1 && sent_partials(config) == warps && !config.packed &&
                                        Columns::is_known && sizeof(Real) == 4));

  RowGroup() : thread_(thread_index() % config.threads), row_(thread_index() / config.threads) {}

  // Before merge(), by every thread of the block; best while the loads of the row are under way.
  void prepare_to_merge() const {
    if constexpr (config.cluster > 1) {
      if (thread_ == barrier_thread) {
        merge_barrier().init();
        merge_barrier().expect(cluster_partials(config) * static_cast<int>(sizeof(Partial<Real>)));
        publish_barriers();
      }
      // Waited for in merge(): a block may be sent to once it has started.
      cluster_arrive();
    }
  }

  // The row of this group in a tile of rows, which one block, or one cluster, works on.
  static long long tile() { return block_index() / config.cluster; }
  long long row(long long tile) const { return tile * config.rows + row_; }
  // The last tile can have fewer rows. The threads of a row that does not exist stay for the barriers.
  static bool exists(long long row, const Arguments& arguments) { return config.rows == 1 || row < arguments.rows; }

  // How a row is cut.
  struct Cover {
    Index head;     // elements before the body
    Index packets;  // of the body
    Index own;      // of these, the packets of this block
    Index edges;    // elements of both edges together
  };
  template <class In>
  static Cover cover(const In* row, Index cols) {
    Index head = 0;
    if constexpr (config.peeled) {
      const Index to_boundary = static_cast<Index>(elements_to_boundary(row));
      head = to_boundary < cols ? to_boundary : cols;
    }
    const Index packets = (cols - head) / width;
    Index own = packets;
    if constexpr (config.cluster > 1) {
      const Index left = packets - cluster_rank() * block_packets;
      own = left < block_packets ? left : block_packets;
    }
    return {head, packets, own, cols - packets * width};
  }

  // Whether a packet of the body, which begins at `body`, is moved in one access. The packets of a
  // peeled row of input begin where it can be.
  template <class Out>
  static bool writes_wide(const Out* body) {
    return config.aligned || width == 1 || is_aligned(body, static_cast<int>(sizeof(Out)) * width);
  }
  template <class In>
  static bool reads_wide(const In* body) {
    return config.peeled || writes_wide(body);
  }

  // Packet k of this thread from packet `first` of its block on, and whether there is one.
  Index packet(int k, Index first) const { return first + static_cast<Index>(k * config.threads) + thread_; }
  bool has(int k, Index first, const Cover& cover) const {
    if constexpr (Columns::is_known) {
      // Where all threads of a row that exists have it, that shall be known when the kernel is compiled.
      if (first + (k + 1) * config.threads <= fewest_packets) return config.rows == 1 || cover.own > 0;
    }
    return packet(k, first) < cover.own;
  }
  // Where it is. The distance to the thread's first packet is the same for all threads.
  template <class T>
  T* at_packet(T* body, int k, Index first) const {
    return body + first_packet() * width + (first + static_cast<Index>(k * config.threads)) * width;
  }

  // As they are in memory; what is beyond the body is left as it was.
  template <int count, class In>
  void load_packets(Packet<In, width> (&packets)[count], const In* body, Index first, const Cover& cover) const {
    const bool wide = reads_wide(body);
    for (int k = 0; k < count; ++k) {
      if (!has(k, first, cover)) continue;
      const In* const from = at_packet(body, k, first);
      if (wide) {
        packets[k] = load_wide<In, width, lines<In>>(from);
      } else {
        for (int i = 0; i < width; ++i) packets[k].at[i] = load_one(from + i);
      }
    }
  }

  // A packet as scaled numbers; -inf where there is none.
  template <class In>
  static void widen_packet(Real* x, const Packet<In, width>& packet, bool present, Real scale) {
    kernels::widen_packet(x, packet);
    for (int i = 0; i < width; ++i) x[i] = present ? scale * x[i] : -infinity<Real>();
  }

  // `count` elements of this thread's packets from packet `first` on, as scaled numbers.
  template <int count, class In>
  void load(Real (&x)[count], const In* body, Index first, const Cover& cover, Real scale) const {
    Packet<In, width> packets[count / width];
    load_packets(packets, body, first, cover);
    for (int k = 0; k < count / width; ++k) widen_packet(x + k * width, packets[k], has(k, first, cover), scale);
  }

  // Writes the numbers of packet k, if there is one.
  template <class Out>
  void store_packet(const Real* x, int k, Out* body, bool wide, Index first, const Cover& cover) const {
    if (!has(k, first, cover)) return;
    Out* const to = at_packet(body, k, first);
    if (wide) {
      store_wide(to, narrow_packet<Out, width>(x));
    } else {
      for (int i = 0; i < width; ++i) store_one(to + i, narrow<Out>(x[i]));
    }
  }
  template <int count, class Out>
  void store(const Real (&x)[count], Out* body, Index first, const Cover& cover) const {
    const bool wide = writes_wide(body);
    for (int k = 0; k < count / width; ++k) store_packet(x + k * width, k, body, wide, first, cover);
  }

  // Elements of the edges that a thread may have; 0 where rows are known to have none.
  static constexpr int most_edges = config.peeled                                              ? 2 * (width - 1)
                                    : config.aligned && Columns::template whole_packets<width> ? 0
                                                                                               : width - 1;
  static constexpr int edges = (most_edges + threads - 1) / threads;
  // Their numbers; one unused element where there are none.
  using Edges = Real[edges > 0 ? edges : 1];

  template <class In>
  void load_edges(Edges& x, const In* row, const Cover& cover, Real scale) const {
    x[0] = -infinity<Real>();
    for (int i = 0; i < edges; ++i) {
      const Index e = edge(i);
      x[i] = e < cover.edges ? scale * widen(load_one(row + column_of_edge(e, cover))) : -infinity<Real>();
    }
  }
  template <class Out>
  void store_edges(const Edges& x, Out* row, const Cover& cover) const {
    for (int i = 0; i < edges; ++i) {
      const Index e = edge(i);
      if (e < cover.edges) store_one(row + column_of_edge(e, cover), narrow<Out>(x[i]));
    }
  }

  // Agreement of the whole group; every thread of the block calls. A slot of shared memory is
  // written once between two calls of `reuse`.
  Real max(Real value) const {
    static_assert(config.cluster == 1);
    value = lane_max<lanes>(value);
    if constexpr (warps > 1) {
      publish(max_slots(), value);
      sync_block();
      value = warp_maximum(collect(max_slots(), -infinity<Real>()));
    }
    return value;
  }

  Real sum(Real value) const {
    static_assert(config.cluster == 1);
    value = lane_sum<lanes>(value);
    if constexpr (warps > 1) {
      publish(sum_slots(), value);
      sync_block();
      value = lane_sum<warp_slots>(collect(sum_slots(), Real(0)));
    }
    return value;
  }

  // Once a kernel where the group is a cluster.
  Partial<Real> merge(Partial<Real> part) const {
    if constexpr (config.cluster > 1) {
      const RemotePlace place = place_in_other_block();
      return merge_in_cluster(merge_in_block(part), place);
    } else {
      return merge_in_block(part);
    }
  }

  // The same in less time: relative to the maximum of the warp, on which it has agreed already, unless the row's is so
  // much larger that the sum is out of bounds, or the warp has none. `relate(max)` is called while sums are under way.
  template <class Relate>
  Partial<Real> merge_with_low_latency(const Partial<Real>& part, const Relate& relate) const {
    const RemotePlace place = place_in_other_block();
    Real max = warp_maximum(part.max);
    bool valid = false;
    const Real sum = warp_sum(part.sum_near(max), valid);
    cluster_wait();
    send({max, valid ? sum : not_a_number<Real>()}, place);
    merge_barrier().wait_for_blocks();
    Real whole = warp_sum(Received().sum_near(max), valid);
    relate(max);
    if (!valid || max == -infinity<Real>()) [[unlikely]] {
      forget_loaded();  // what was received is not kept in registers until here
      const Received received;
      max = received.max();
      relate(max);
      whole = warp_sum(received.sum_near(max), valid);
      if (!valid) whole = not_a_number<Real>();
    }
    return {max, whole};
  }

  // Before the group agrees again on something that it has already agreed on.
  static void reuse() {
    if constexpr (warps > 1) sync_block();
  }

 private:
  static constexpr int lanes = config.threads < warp_size ? config.threads : warp_size;
  static constexpr int warp_slots = power_of_two(warps);

  // The number of this thread in the group.
  int thread() const {
    if constexpr (config.cluster > 1) return cluster_rank() * config.threads + thread_;
    return thread_;
  }
  Index first_packet() const {
    if constexpr (config.cluster > 1) return cluster_rank() * block_packets + thread_;
    return thread_;
  }

  // Packets of each block but the last ones of a cluster, which have what is left. Where the row's length is
  // known all have about the same, in whole lines of memory.
  static constexpr Index packets_of_block() {
    if constexpr (Columns::is_known && config.cluster > 1) {
      constexpr Index line = 8;
      constexpr Index most = Columns::count({}) / width;
      return (most + config.cluster * line - 1) / (config.cluster * line) * line;
    } else {
      return config.threads * (config.elements / width);
    }
  }
  static constexpr Index block_packets = packets_of_block();
  // What every block has at least, if the length is known.
  static constexpr Index fewest_of_every_block() {
    if constexpr (Columns::is_known) {
      constexpr Index body = Columns::count({}) - (config.peeled ? width - 1 : 0);
      return body / width - (config.cluster - 1) * block_packets;
    } else {
      return 0;
    }
  }
  static constexpr Index fewest_packets = fewest_of_every_block();
  Index edge(int i) const { return static_cast<Index>(i * threads + thread()); }
  static Index column_of_edge(Index e, const Cover& cover) { return e < cover.head ? e : e + cover.packets * width; }
  // What few rows' blocks have read makes room in the L2 cache; of 16 bits and more elements a thread that is no gain.
  template <class In>
  static constexpr Lines lines = config.low_latency && (sizeof(In) == 4 || config.elements <= 16) ? Lines::leave_first
                                                                                                  : Lines::stay;
  // To the next place where a packet may begin.
  template <class T>
  static int elements_to_boundary(const T* row) {
    constexpr int bytes = static_cast<int>(sizeof(T)) * width;
    return (bytes - address_modulo(row, bytes)) % bytes / static_cast<int>(sizeof(T));
  }

  // One slot a warp for the maximum and one for the sum, or for both together.
  static constexpr int real_bytes = static_cast<int>(sizeof(Real));
  static SharedArray<Real> max_slots() { return SharedArray<Real>(0); }
  static SharedArray<Real> sum_slots() { return SharedArray<Real>(warp_partials(config) * real_bytes); }
  static SharedArray<Partial<Real>> partial_slots() { return SharedArray<Partial<Real>>(0); }
  // What the blocks have sent.
  static SharedArray<Partial<Real>> sent() {
    return SharedArray<Partial<Real>>(cluster_partials_at(config, real_bytes));
  }
  static CopyBarrier merge_barrier() { return CopyBarrier(merge_barrier_at(config, real_bytes)); }

  // Makes a warp's value known to the block.
  template <class T>
  void publish(SharedArray<T> slots, const T& value) const {
    if (thread_ % warp_size == 0) slots.store(row_ * warps + thread_ / warp_size, value);
  }
  // What the warps of the row have published, over as many lanes; others have the same again.
  template <class T>
  T collect(SharedArray<T> slots, const T& nothing) const {
    const int warp = thread_ % warp_slots;
    return warp < warps ? slots.load(row_ * warps + warp) : nothing;
  }

  // Of a warp, and of the whole block unless its warps' partials are sent.
  Partial<Real> merge_in_block(Partial<Real> part) const {
    part = lane_merge<lanes>(part);
    if constexpr (warp_partials(config) > 0) {
      publish(partial_slots(), part);
      sync_block();
      part = repeated_lane_merge<warp_slots>(collect(partial_slots(), Partial<Real>{}));
    }
    return part;
  }

  // Where this lane sends its warp's partial to.
  RemotePlace place_in_other_block() const {
    const int lane = thread_ % warp_size;
    const int slot = cluster_rank() * sent_partials(config) + thread_ / warp_size;
    return {lane < config.cluster ? lane : 0, sent().offset(slot), merge_barrier()};
  }
  // The first warps send their partials to every block.
  void send(const Partial<Real>& part, const RemotePlace& place) const {
    if (thread_ / warp_size < sent_partials(config) && thread_ % warp_size < config.cluster) place.send(part);
  }
  Partial<Real> merge_in_cluster(const Partial<Real>& part, const RemotePlace& place) const {
    cluster_wait();
    send(part, place);
    merge_barrier().wait_for_blocks();
    return Received().merged();
  }

  // This lane's share of what the block was sent; every warp merges all of it.
  class Received {
   public:
    Received() {
      int from = thread_index() % slots;
      for (Partial<Real>& one : parts_) {
        if (from < count) one = sent().load(from);
        from += slots;
      }
    }
    Real max() const {
      Real max = parts_[0].max;
      for (int i = 1; i < each; ++i) max = maximum(max, parts_[i].max);
      return warp_maximum(max);
    }
    Partial<Real> merged() const {
      const Real max = this->max();
      Real sum = parts_[0].sum_at(max);
      for (int i = 1; i < each; ++i) sum = sum + parts_[i].sum_at(max);
      return {max, lane_sum<slots>(sum)};
    }
    // Of this lane alone, 0 if others have the same.
    Real sum_near(Real max) const {
      Real sum = parts_[0].sum_near(max);
      for (int i = 1; i < each; ++i) sum = sum + parts_[i].sum_near(max);
      return thread_index() % warp_size < slots ? sum : Real(0);
    }

   private:
    static constexpr int count = cluster_partials(config);
    static constexpr int slots = power_of_two(count) < warp_size ? power_of_two(count) : warp_size;
    static constexpr int each = (count + slots - 1) / slots;
    Partial<Real> parts_[each];
  };

  int thread_;  // of the block's part of the group
  int row_;
};

}  // namespace jitsoftmax::kernels
