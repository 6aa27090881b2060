// staged: the row, or a block's part of it, waits in shared memory between its one read and its one
// write. Asynchronous copies bring it in pieces; a piece is summed up while the next ones are under
// way, by few registers and so by many threads. For rows that registers do not hold (sm_90 and newer).
#pragma once

#include "one_read.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
class HeldStaged {
 public:
  using Real = accumulator<In>;
  using Exp = Exponential<Real>;
  using Group = RowGroup<config, Columns, Real>;
  using Index = typename Columns::Index;
  static constexpr int width = config.vector;
  static constexpr int count = config.elements / width;
  static constexpr int each = count / config.pieces;  // packets of a thread in a piece
  static_assert(count % config.pieces == 0);
  static_assert(width * sizeof(In) == staged_packet_bytes);

  HeldStaged(const Group& group, const In* body, const typename Group::Cover& cover, Real scale)
      : group_(group), cover_(cover), scale_(scale), wide_(group.reads_wide(body)) {
    if (thread_index() == 0) {
      for (int piece = 0; piece < config.pieces; ++piece) barrier(piece).init();
      publish_barriers();
    }
    sync_block();
    if (wide_) {
      if (thread_index() == 0) copy_pieces(body);
    } else {
      // Each thread its own packets: nobody else reads them.
      for (int k = 0; k < count; ++k) {
        if (!group.has(k, 0, cover)) continue;
        Packet<In, width> packet;
        for (int i = 0; i < width; ++i) packet.at[i] = load_one(group.at_packet(body, k, 0) + i);
        packets().store(k * config.threads + thread_index(), packet);
      }
    }
  }

  Partial<Real> partial() {
    Accumulator<Exp, Real, true> share;
    for (int piece = 0; piece < config.pieces; ++piece) {
      if (wide_) barrier(piece).wait();
      Real x[each * width];
      for (int i = 0; i < each; ++i) widen(x + i * width, piece * each + i);
      share.add(x);
    }
    return share.partial();
  }

  void store(const Group& group, Out* body, const typename Group::Cover& cover, const Finish<Op, Exp, Real>& finish) {
    const bool wide = group.writes_wide(body);
    for (int k = 0; k < count; ++k) {
      Real x[width];
      widen(x, k);
      for (Real& value : x) value = finish(value);
      group.store_packet(x, k, body, wide, 0, cover);
    }
  }

 private:
  static CopyBarrier barrier(int piece) {
    return CopyBarrier(staged_barriers_at(config, sizeof(Real)) + piece * static_cast<int>(sizeof(long long)));
  }
  // The block's part of the row, as it is in memory.
  static SharedArray<Packet<In, width>> packets() {
    return SharedArray<Packet<In, width>>(staged_packets_at(config, sizeof(Real)));
  }

  // By the block's first thread, whose packet `piece` * each the piece begins with.
  void copy_pieces(const In* body) const {
    constexpr int most = each * config.threads;
    for (int piece = 0; piece < config.pieces; ++piece) {
      const Index left = cover_.own - group_.packet(piece * each, 0);
      const int bytes = (left <= 0 ? 0 : left < most ? static_cast<int>(left) : most) * staged_packet_bytes;
      barrier(piece).expect(bytes);
      if (bytes == 0) continue;
      copy_to_shared(packets().offset(piece * most), group_.at_packet(body, piece * each, 0), bytes, barrier(piece));
    }
  }

  void widen(Real* x, int k) const {
    const bool present = group_.has(k, 0, cover_);
    Packet<In, width> packet;
    if (present) packet = packets().load(k * config.threads + thread_index());
    Group::widen_packet(x, packet, present, scale_);
  }

  const Group& group_;
  const typename Group::Cover& cover_;
  Real scale_;
  bool wide_;
};

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
staged(const Arguments arguments) {
  static_assert(config.rows == 1 && config.pieces > 0);
  static_assert(config.shared == staged_bytes(config, sizeof(accumulator<In>)),
                "the launch has the shared memory of the plan");
  softmax_with_one_read<HeldStaged<config, Columns, In, Out, Op>, Op, config, Columns, In, Out>(arguments);
}

}  // namespace jitsoftmax::kernels
