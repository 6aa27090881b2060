// Gang: blocks of the grid that share a row, wherever on the device they run, and what they tell each other
// through global memory.
#pragma once

#include "row_group.cuh"

namespace jitsoftmax::kernels {

// A block's part of a row: its length is known at the launch only, even if the row's is known before.
template <class Columns>
struct PartOf {
  using Index = typename Columns::Index;
  static constexpr bool is_known = false;
  template <int width>
  static constexpr bool whole_packets = Columns::template whole_packets<width>;
};

// `Arguments::gang` neighbouring blocks. All of them have to be on the device at once, and nobody else may use
// their workspace at the same time. It is zero before its first launch. A launch leaves the number of its last turn
// in it, so that what is still there of earlier turns is never taken for the next one's.
template <class Real>
class Gang {
 public:
  explicit Gang(const Arguments& arguments)
      : size_(arguments.gang),
        rank_(static_cast<int>(block_index() % size_)),
        number_(block_index() / size_),
        words_(static_cast<unsigned long long*>(arguments.workspace) + number_ * gang_words(size_, sizeof(Real))),
        turn_(static_cast<unsigned>(load_one(words_))) {}

  long long number() const { return number_; }
  long long count() const { return grid_blocks() / size_; }

  // The part of a row that is this block's. The edges are the first block's.
  template <class Index>
  struct Part {
    Index first;  // of the row's packets
    Index count;
    bool has_edges;
  };
  template <class Index>
  Part<Index> part(Index packets) const {
    constexpr Index line = 8;  // packets of whole lines of memory
    const Index each = (packets + line * size_ - 1) / (line * size_) * line;
    const Index first = each * rank_ < packets ? each * rank_ : packets;
    const Index left = packets - first;
    return {first, left < each ? left : each, rank_ == 0};
  }

  // Of what all blocks have; every thread of the block calls with what its block has. Two turns have their
  // words in turn: who has come to the next one has read all of the last.
  template <class Group>
  Partial<Real> merge(const Group& group, const Partial<Real>& own) {
    ++turn_;
    unsigned long long* const slots = words_ + gang_header_words + static_cast<long long>(turn_ % 2) * size_ * words;
    if (thread_index() == 0) {
      const auto mine = __builtin_bit_cast(Pairs, own);
      for (int i = 0; i < pairs; ++i) post(slots + rank_ * words + 2 * i, mine.at[i], turn_);
    }
    Partial<Real> whole;
    for (int from = thread_index(); from < size_; from += Group::threads) {
      Pairs its;
      for (int i = 0; i < pairs; ++i) its.at[i] = await_post(slots + from * words + 2 * i, turn_);
      const auto part = __builtin_bit_cast(Partial<Real>, its);
      const Real max = maximum(whole.max, part.max);
      whole = {max, whole.sum_at(max) + part.sum_at(max)};
    }
    group.reuse();
    return group.merge(whole);
  }

  // After the last turn: all blocks have begun and know the turn that they began with.
  void leave() const {
    if (rank_ == 0 && thread_index() == 0) store_one<unsigned long long>(words_, turn_);
  }

 private:
  static constexpr int pairs = sizeof(Partial<Real>) / sizeof(Pair);
  static constexpr int words = 2 * pairs;
  struct alignas(Partial<Real>) Pairs {
    Pair at[pairs];
  };

  int size_;
  int rank_;
  long long number_;
  unsigned long long* words_;
  unsigned turn_;
};

}  // namespace jitsoftmax::kernels
