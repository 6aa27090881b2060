// counted: the row in an array of each thread, whose length is counted at the launch, as the lesson's v3 has it. What
// `bench --study` shows: a register has no index, so that an array whose trip count the compiler does not know is
// local memory. Nothing chooses it.
#pragma once

#include "one_read.cuh"

namespace jitsoftmax::kernels {

template <Config config, class Columns, class In, class Out, class Op>
class HeldCounted {
 public:
  using Real = accumulator<In>;
  using Exp = Exponential<Real>;
  using Group = RowGroup<config, Columns, Real>;
  using Index = typename Columns::Index;
  static constexpr int width = config.vector;
  static constexpr int most_packets = config.elements / width;

  HeldCounted(const Group& group, const In* body, const typename Group::Cover& cover, Real scale)
      : packets_(static_cast<int>((cover.own + config.threads - 1) / config.threads)) {
    for (int k = 0; k < packets_; ++k) group.load(x_[k], body, first(k), cover, scale);
  }

  Partial<Real> partial() const {
    Real max = -infinity<Real>();
    for (int k = 0; k < packets_; ++k) max = maximum(max, tree_max<width>(x_[k]));
    Real sum = 0;
    for (int k = 0; k < packets_; ++k) sum = sum + sum_of_terms<Exp>(x_[k], max);
    return {max, sum};
  }

  void store(const Group& group, Out* body, const typename Group::Cover& cover, const Finish<Op, Exp, Real>& finish) {
    for (int k = 0; k < packets_; ++k) {
      for (Real& value : x_[k]) value = finish(value);
      group.store(x_[k], body, first(k), cover);
    }
  }

 private:
  static Index first(int k) { return static_cast<Index>(k) * config.threads; }

  Real x_[most_packets][width];
  int packets_;  // of each thread: those that a row of so many columns takes
};

template <Config config, class Columns, class In, class Out, class Op>
JITSOFTMAX_KERNEL(config)
counted(const Arguments arguments) {
  static_assert(!Columns::is_known, "the trip count is that of the launch");
  static_assert(config.shared == merge_bytes(config, sizeof(accumulator<In>)),
                "the launch has the shared memory of the plan");
  softmax_with_one_read<HeldCounted<config, Columns, In, Out, Op>, Op, config, Columns, In, Out>(arguments);
}

}  // namespace jitsoftmax::kernels
