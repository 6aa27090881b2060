// ReadyThreads: the threads that can go on, and which of them does.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "kernel_templates/config.cuh"

namespace jitsoftmax::host_test {

// Any order can come up. Mostly one warp goes on until all its threads wait: the stacks of a warp fit in
// the fastest cache, those of a block do not.
class ReadyThreads {
 public:
  void clear();
  void add(int thread);

  // Whether there is none.
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // Removes and returns one.
  [[nodiscard]] int take(std::minstd_rand& order);

 private:
  struct Warp {
    std::vector<int> threads;
    bool listed = false;
  };

  static constexpr auto none = static_cast<std::size_t>(-1);

  std::vector<Warp> warps_;
  std::vector<std::size_t> listed_;  // those with a thread, and the current one
  std::size_t current_ = none;       // index in listed_
  std::size_t count_ = 0;            // threads
};

}  // namespace jitsoftmax::host_test
