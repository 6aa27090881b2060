// registers: the row stays in registers between its one read and its one write. Short rows take a
// part of a warp, several rows a block; long ones a cluster of blocks. The lesson's v3 is a point of
// it.
#pragma once

#include "one_read.cuh"

namespace jitsoftmax::kernels {

// A thread's packets of a row as numbers: one exponential each.
template <Config config, class Columns, class In, class Out, class Op>
class HeldNumbers {
 public:
  using Real = accumulator<In>;
  using Exp = Exponential<Real>;
  using Group = RowGroup<config, Columns, Real>;
  static constexpr int width = config.vector;
  static constexpr int count = config.elements / width;

  HeldNumbers(const Group& group, const In* body, const typename Group::Cover& cover, Real scale) : scale_(scale) {
    group.load_packets(packets_, body, 0, cover);
    for (int k = 0; k < count; ++k) present_[k] = group.has(k, 0, cover);
  }

  Partial<Real> partial() {
    for (int k = 0; k < count; ++k) Group::widen_packet(x_ + k * width, packets_[k], present_[k], scale_);
    return terms_.partial(x_);
  }
  void relate_to(Real max) { terms_.relate_to(x_, max); }

  void store(const Group& group, Out* body, const typename Group::Cover& cover, const Finish<Op, Exp, Real>& finish) {
    terms_.template finish<config.low_latency>(x_, finish);
    group.store(x_, body, 0, cover);
  }

 private:
  Packet<In, width> packets_[count];
  bool present_[count];
  Real scale_;
  Real x_[config.elements];
  Terms<Op, Exp, Real> terms_;
};

// The same as the bits that were read, half as many registers for 16-bit types. The exponential is
// computed twice, which the time of the memory accesses hides.
template <Config config, class Columns, class In, class Out, class Op>
class HeldPackets {
 public:
  using Real = accumulator<In>;
  using Exp = Exponential<Real>;
  using Group = RowGroup<config, Columns, Real>;
  static constexpr int width = config.vector;
  static constexpr int count = config.elements / width;

  HeldPackets(const Group& group, const In* body, const typename Group::Cover& cover, Real scale) : scale_(scale) {
    group.load_packets(packets_, body, 0, cover);
    for (int k = 0; k < count; ++k) present_[k] = group.has(k, 0, cover);
  }

  Partial<Real> partial() {
    scale_ = take_sign_of_scale(packets_, scale_, [&](int k) { return present_[k]; });
    const Real max = scaled_maximum(largest(tree_max<count>(packets_)), scale_);
    Real sums[count];
    for (int k = 0; k < count; ++k) {
      Real x[width];
      widen_packet(x, packets_[k]);
      for (Real& value : x) value = scale_ * value;
      const Real sum = sum_of_terms<Exp>(x, max);
      sums[k] = present_[k] ? sum : Real(0);
    }
    return {max, tree_sum<count>(sums)};
  }

  void store(const Group& group, Out* body, const typename Group::Cover& cover, const Finish<Op, Exp, Real>& finish) {
    for (auto& packet : packets_) forget_derived(packet);
    const bool wide = group.writes_wide(body);
    for (int k = 0; k < count; ++k) {
      Real x[width];
      widen_packet(x, packets_[k]);
      for (Real& value : x) value = finish(scale_ * value);
      group.store_packet(x, k, body, wide, 0, cover);
    }
  }

 private:
  Packet<In, width> packets_[count];
  bool present_[count];
  Real scale_;
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
