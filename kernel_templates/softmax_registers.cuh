// registers: the row stays in registers between its one read and its one write. Short rows take a
// part of a warp, several rows a block; long ones a cluster of blocks. The lesson's v3 is a point of
// it.
#pragma once

#include "one_read.cuh"

namespace jitsoftmax::kernels {

// A thread's packets of a row as they are in memory, and which of them there are.
template <Config config, class Columns, class In>
class ReadPackets {
 public:
  using Real = accumulator<In>;
  using Group = RowGroup<config, Columns, Real>;
  static constexpr int width = config.vector;
  static constexpr int count = config.elements / width;

  ReadPackets(const Group& group, const In* body, const typename Group::Cover& cover, Real scale) : scale_(scale) {
    group.load_packets(packets_, body, 0, cover);
    for (int k = 0; k < count; ++k) present_[k] = group.has(k, 0, cover);
  }

  // Packet k as scaled numbers; -inf where there is none.
  void widen(Real* x, int k) const { Group::widen_packet(x, packets_[k], present_[k], scale_); }

  template <int turn>
  void forget_derived() {
    for (auto& packet : packets_) kernels::forget_derived<turn>(packet);
  }

 private:
  Packet<In, width> packets_[count];
  bool present_[count];
  Real scale_;
};

// A thread's packets of a row as numbers: one exponential each.
template <Config config, class Columns, class In, class Out, class Op>
class HeldNumbers {
 public:
  using Packets = ReadPackets<config, Columns, In>;
  using Real = typename Packets::Real;
  using Exp = Exponential<Real>;
  using Group = typename Packets::Group;

  HeldNumbers(const Group& group, const In* body, const typename Group::Cover& cover, Real scale)
      : packets_(group, body, cover, scale) {}

  Partial<Real> partial() {
    for (int k = 0; k < Packets::count; ++k) packets_.widen(x_ + k * Packets::width, k);
    return terms_.partial(x_);
  }

  void store(const Group& group, Out* body, const typename Group::Cover& cover, const Finish<Op, Exp, Real>& finish) {
    terms_.finish(x_, finish);
    group.store(x_, body, 0, cover);
  }

 private:
  Packets packets_;
  Real x_[config.elements];
  Terms<Op, Exp, Real> terms_;
};

// The same as the bits that were read, half as many registers for 16-bit types. The exponential is
// computed twice, which the time of the memory accesses hides.
template <Config config, class Columns, class In, class Out, class Op>
class HeldPackets {
 public:
  using Packets = ReadPackets<config, Columns, In>;
  using Real = typename Packets::Real;
  using Exp = Exponential<Real>;
  using Group = typename Packets::Group;
  static constexpr int width = Packets::width;
  static constexpr int count = Packets::count;

  HeldPackets(const Group& group, const In* body, const typename Group::Cover& cover, Real scale)
      : packets_(group, body, cover, scale) {}

  Partial<Real> partial() {
    Real maxima[count];
    for (int k = 0; k < count; ++k) {
      Real x[width];
      packets_.widen(x, k);
      maxima[k] = tree_max<width>(x);
    }
    const Real max = tree_max<count>(maxima);
    packets_.template forget_derived<0>();
    Real sums[count];
    for (int k = 0; k < count; ++k) {
      Real x[width];
      packets_.widen(x, k);
      sums[k] = sum_of_terms<Exp>(x, max);
    }
    return {max, tree_sum<count>(sums)};
  }

  void store(const Group& group, Out* body, const typename Group::Cover& cover, const Finish<Op, Exp, Real>& finish) {
    packets_.template forget_derived<1>();
    const bool wide = group.writes_wide(body);
    for (int k = 0; k < count; ++k) {
      Real x[width];
      packets_.widen(x, k);
      for (Real& value : x) value = finish(value);
      group.store_packet(x, k, body, wide, 0, cover);
    }
  }

 private:
  Packets packets_;
};

template <bool packed>
struct HeldInRegisters {
  template <Config config, class Columns, class In, class Out, class Op>
  using type = HeldNumbers<config, Columns, In, Out, Op>;
};
template <>
struct HeldInRegisters<true> {
  template <Config config, class Columns, class In, class Out, class Op>
  using type = HeldPackets<config, Columns, In, Out, Op>;
};

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
registers(const Arguments arguments) {
  static_assert(config.shared == merge_bytes(config, sizeof(accumulator<In>)),
                "the launch has the shared memory of the plan");
  using Held = typename HeldInRegisters<config.packed>::template type<config, Columns, In, Out, Op>;
  softmax_with_one_read<Held, Op, config, Columns, In, Out>(arguments);
}

}  // namespace jitsoftmax::kernels
