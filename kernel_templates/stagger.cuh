// Stagger: the tiles of rows with which a launch begins, each of a cluster of blocks, read one after another.
//
// Blocks that begin together read together, then agree together, while the memory has nothing to do, and write
// together. Where each tile begins to read when those before it have been served, one reads while another agrees and
// a third writes, and so it stays: a cluster begins where one has ended.
#pragma once

#include "device.cuh"

namespace jitsoftmax::kernels {

// What is asked for at once, for the memory to be busy.
constexpr long long bytes_under_way = 1 << 20;

// Before it reads, by every thread of tile `tile`, of `bytes`.
template <Config config>
void await_turn(long long tile, long long bytes, const Arguments& arguments) {
  if constexpr (config.staggered) {
    static_assert(config.cluster > 1);
    if (tile < arguments.staggered) wait_cycles(static_cast<int>((tile * bytes - bytes_under_way) / bytes_a_cycle));
  }
}

}  // namespace jitsoftmax::kernels
