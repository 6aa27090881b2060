// The executor runs the blocks of a cluster together and catches what may not happen between them.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "host/wrong_kernel.hpp"
#include "kernel_templates/device.cuh"

namespace jitsoftmax::host_test {
namespace {

using kernels::cluster_arrive;
using kernels::cluster_rank;
using kernels::cluster_wait;
using kernels::SharedArray;
using kernels::sync_block;
using kernels::thread_index;

plan::Geometry clusters(unsigned cluster, unsigned threads, unsigned shared, unsigned count = 1) {
  return {.grid_x = cluster * count, .grid_y = 1, .block = threads, .cluster = cluster, .shared = shared};
}

void cluster_barrier() {
  cluster_arrive();
  cluster_wait();
}

TEST_CASE("blocks of a cluster are neighbours, know their rank and add up through each other's memory") {
  std::vector<float> sums(3 * 4 * 32);
  run_grid(
      clusters(4, 32, 16, 3),
      [&] {
        CHECK(cluster_rank() == kernels::block_index() % 4);
        cluster_barrier();
        const SharedArray<float> slots(0);
        if (thread_index() < 4)
          slots.store_to_block(thread_index(), cluster_rank(), static_cast<float>(cluster_rank() + 1));
        cluster_barrier();
        float sum = 0;
        for (int rank = 0; rank < 4; ++rank) sum += slots.load(rank);
        sums[static_cast<std::size_t>(kernels::block_index() * 32 + thread_index())] = sum;
      },
      seed());
  for (const float sum : sums) CHECK(sum == 10);
}

TEST_CASE("what a thread does between the halves of a cluster barrier is ordered by its block's barriers alone") {
  run_grid(
      clusters(2, 32, 128),
      [] {
        const SharedArray<int> slots(0);
        cluster_arrive();
        slots.store(thread_index(), 1);
        sync_block();
        CHECK(slots.load(31 - thread_index()) == 1);
        cluster_wait();
      },
      seed());
  const auto between = [] {
    const SharedArray<int> slots(0);
    cluster_arrive();
    slots.store(thread_index(), 1);
    cluster_wait();
    (void)slots.load(31 - thread_index());
  };
  CHECK(says(caught(clusters(2, 32, 128), between), "no barrier in between"));
}

TEST_CASE("a block whose start nobody has waited for may not be written to") {
  const auto at_once = [] {
    if (thread_index() == 0) SharedArray<int>(0).store_to_block(1 - cluster_rank(), 0, 1);
    cluster_barrier();
  };
  CHECK(says(caught(clusters(2, 32, 4), at_once), "it may not have started"));
  const auto after_half = [] {
    cluster_arrive();
    if (thread_index() == 0) SharedArray<int>(0).store_to_block(1 - cluster_rank(), 0, 1);
    cluster_wait();
  };
  CHECK(says(caught(clusters(2, 32, 4), after_half), "it may not have started"));
}

TEST_CASE("a block that may have exited may not be written to") {
  const auto no_barrier_after = [] {
    cluster_barrier();
    if (thread_index() == 0) SharedArray<int>(0).store_to_block(1 - cluster_rank(), 0, 1);
  };
  const std::string message = caught(clusters(2, 32, 4), no_barrier_after);
  CHECK((message.find("has exited") != std::string::npos ||
         message.find("without a cluster barrier after that") != std::string::npos));
}

TEST_CASE("remote stores are read after a cluster barrier, and not after one of the block") {
  const auto too_early = [] {
    const SharedArray<int> slot(0);
    cluster_barrier();
    if (thread_index() == 0) slot.store_to_block(1 - cluster_rank(), 0, 1);
    sync_block();
    (void)slot.load(0);
    cluster_barrier();
  };
  CHECK(says(caught(clusters(2, 32, 4), too_early), "of block"));
  const auto arrived_only = [] {
    const SharedArray<int> slot(0);
    cluster_barrier();
    if (thread_index() == 0) slot.store_to_block(1 - cluster_rank(), 0, 1);
    cluster_arrive();
    (void)slot.load(0);
    cluster_wait();
  };
  CHECK(says(caught(clusters(2, 32, 4), arrived_only), "no barrier in between"));
}

TEST_CASE("two blocks that write the same byte of a third are a race") {
  const auto clash = [] {
    cluster_barrier();
    if (thread_index() == 0 && cluster_rank() > 0) SharedArray<int>(0).store_to_block(0, 0, 1);
    cluster_barrier();
  };
  CHECK(says(caught(clusters(3, 32, 4), clash), "writes byte 0 of shared memory, which thread 0 of block"));
}

TEST_CASE("remote stores have the bounds and the alignment of local ones, and a rank") {
  const auto store = [](int rank, int offset, int index) {
    return [=] {
      cluster_barrier();
      if (thread_index() == 0) SharedArray<int>(offset).store_to_block(rank, index, 1);
      cluster_barrier();
    };
  };
  CHECK(says(caught(clusters(2, 32, 8), store(1, 0, 2)), "accesses bytes 8..11"));
  CHECK(says(caught(clusters(2, 32, 8), store(1, 2, 0)), "not a multiple of 4"));
  CHECK(says(caught(clusters(2, 32, 8), store(2, 0, 0)), "writes to block 2 of the cluster, which has 2"));
  CHECK(says(caught(clusters(2, 32, 8), store(-1, 0, 0)), "writes to block -1"));
}

TEST_CASE("both halves of a cluster barrier, by every thread, in turn") {
  const auto never_waits = [] { cluster_arrive(); };
  CHECK(says(caught(clusters(2, 32, 0), never_waits), "exits without having waited"));
  const auto never_arrives = [] { cluster_wait(); };
  CHECK(says(caught(clusters(2, 32, 0), never_arrives), "has not arrived at"));
  const auto arrives_twice = [] {
    cluster_arrive();
    cluster_arrive();
  };
  CHECK(says(caught(clusters(2, 32, 0), arrives_twice), "without having waited for the last one"));
  const auto one_missing = [] {
    if (kernels::block_index() != 1 || thread_index() != 5) cluster_barrier();
  };
  CHECK(says(caught(clusters(2, 32, 0), one_missing),
             "waits for a cluster barrier, but block 1's thread 5 (warp 0, lane 5) has exited"));
}

}  // namespace
}  // namespace jitsoftmax::host_test
