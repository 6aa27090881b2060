// The executor runs the blocks of a cluster together and catches what may not happen between them.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "host/wrong_kernel.hpp"
#include "kernel_templates/device.cuh"

namespace jitsoftmax::host_test {
namespace {

using kernels::cluster_arrive;
using kernels::cluster_rank;
using kernels::cluster_wait;
using kernels::CopyBarrier;
using kernels::RemotePlace;
using kernels::SharedArray;
using kernels::sync_block;
using kernels::thread_index;

plan::Geometry clusters(unsigned cluster, unsigned threads, unsigned shared, unsigned count = 1) {
  return {.grid = cluster * count, .block = threads, .cluster = cluster, .shared = shared};
}

void cluster_barrier() {
  cluster_arrive();
  cluster_wait();
}

constexpr unsigned inbox = 64;  // bytes: the barrier, then a slot for each of up to seven blocks
SharedArray<long long> slots() { return SharedArray<long long>(8); }

// The parts of a right kernel, in which every block tells all others its number; to be left out or replaced.
struct Parts {
  std::function<void()> init = [] { CopyBarrier(0).init(); };
  std::function<void(int)> expect = [](int blocks) { CopyBarrier(0).expect(blocks * 8); };
  std::function<void()> start = cluster_barrier;
  std::function<void(int)> send = [](int blocks) {
    if (thread_index() >= blocks) return;
    const long long value = cluster_rank() + 1;
    RemotePlace(thread_index(), slots().offset(cluster_rank()), CopyBarrier(0)).send(value);
  };
  std::function<void()> wait = [] { CopyBarrier(0).wait(); };
  std::function<void(int)> read = [](int blocks) {
    long long sum = 0;
    for (int rank = 0; rank < blocks; ++rank) sum += slots().load(rank);
    CHECK(sum == blocks * (blocks + 1) / 2);
  };
};

std::function<void()> kernel(const Parts& parts, int blocks) {
  return [=] {
    if (thread_index() == 0) {
      parts.init();
      parts.expect(blocks);
    }
    parts.start();
    parts.send(blocks);
    parts.wait();
    parts.read(blocks);
  };
}

std::string caught_with(const Parts& parts) { return caught(clusters(2, 32, inbox), kernel(parts, 2)); }

TEST_CASE("blocks of a cluster are neighbours, know their rank and send each other values") {
  run_grid(
      clusters(4, 32, 0, 3), [] { CHECK(cluster_rank() == kernels::block_index() % 4); }, seed());
  for (std::uint64_t order = 0; order < 50; ++order) {
    run_grid(clusters(4, 32, inbox, 3), kernel({}, 4), seed() + order);
  }
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

TEST_CASE("a cluster barrier orders no memory accesses") {
  const auto across = [] {
    const SharedArray<int> numbers(0);
    numbers.store(thread_index(), 1);
    cluster_barrier();
    (void)numbers.load(31 - thread_index());
  };
  CHECK(says(caught(clusters(2, 32, 128), across), "no barrier in between"));
}

TEST_CASE("a block whose start nobody has waited for may not be sent to") {
  Parts parts;
  parts.start = sync_block;
  CHECK(says(caught_with(parts), "it may not have started"));
  parts.start = [] {
    sync_block();
    cluster_arrive();
  };
  parts.wait = [] {
    cluster_wait();
    CopyBarrier(0).wait();
  };
  CHECK(says(caught_with(parts), "it may not have started"));
}

TEST_CASE("what was sent is read after waiting at its barrier, and not after one of the block") {
  Parts parts;
  parts.read = [](int) { (void)slots().load(cluster_rank()); };  // what the block has sent itself
  parts.wait = sync_block;
  CHECK(says(caught_with(parts), "without having waited at the barrier at byte 0"));
  parts.wait = [] {
    sync_block();
    if (thread_index() == 0) CopyBarrier(0).wait();
  };
  CHECK(says(caught_with(parts), "without having waited at the barrier at byte 0"));
  parts = {};
  parts.wait = [] {
    if (thread_index() == 0) CopyBarrier(0).wait();
    sync_block();
  };
  run_grid(clusters(2, 32, inbox), kernel(parts, 2), seed());
}

TEST_CASE("a block that may have ended may not be sent to") {
  Parts parts;
  parts.wait = [] {};
  parts.read = [](int) {};
  const std::string message = caught_with(parts);
  CHECK((says(message, "has exited") || says(message, "nobody has waited at")));
}

TEST_CASE("a block expects what it is sent") {
  Parts parts;
  parts.read = [](int) {};
  parts.expect = [](int blocks) { CopyBarrier(0).expect(blocks * 8 - 8); };
  const std::string message = caught_with(parts);  // the block may have ended after the first 8
  CHECK((says(message, "starts copies of 16 bytes, but the barrier at byte 0 of shared memory expects 8") ||
         says(message, "has exited")));
  parts.expect = [](int blocks) { CopyBarrier(0).expect(blocks * 8 + 8); };
  CHECK(says(caught_with(parts), "expects 24 and 16 have arrived, and no copy is under way"));
  parts.expect = [](int) {};
  CHECK(says(caught_with(parts), "was told to expect none"));
  parts.init = [] {};
  CHECK(says(caught_with(parts), "which is not initialized"));
}

TEST_CASE("values are sent to places of their own, within the memory of a block that there is") {
  const auto with = [](int rank, int offset) {
    Parts parts;
    parts.send = [=](int) {
      if (thread_index() == 0) RemotePlace(rank, offset, CopyBarrier(0)).send(1LL);
    };
    return caught_with(parts);
  };
  CHECK(says(with(0, 8), "which an asynchronous copy brings"));  // both blocks, to the same place
  CHECK(says(with(1, 64), "accesses bytes 64..71"));
  CHECK(says(with(1, 12), "not a multiple of 8"));
  CHECK(says(with(1, 0), "touches the bytes of the barrier"));
  CHECK(says(with(2, 8), "sends to block 2 of the cluster, which has 2"));
  CHECK(says(with(-1, 8), "sends to block -1"));
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
