// The executor runs right kernels right and catches wrong ones, whatever the order of the threads.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "host/executor.hpp"
#include "host/seed.hpp"
#include "host/wrong_kernel.hpp"
#include "kernel_templates/device.cuh"

namespace jitsoftmax::host_test {
namespace {

using kernels::SharedArray;
using kernels::shuffle_xor;
using kernels::sync_block;
using kernels::thread_index;

TEST_CASE("every thread of every block runs once and knows its place") {
  std::vector<std::atomic<int>> runs(6 * 96);
  const plan::Geometry shape{.grid = 6, .block = 96, .shared = 0};
  run_grid(
      shape,
      [&] {
        CHECK(kernels::grid_blocks() == 6);
        ++runs[static_cast<std::size_t>(kernels::block_index() * 96 + thread_index())];
      },
      seed());
  for (const auto& count : runs) CHECK(count == 1);
}

TEST_CASE("threads run in an order that the seed shuffles and repeats") {
  const auto order = [](std::uint64_t seed) {
    std::vector<int> seen;
    run_grid(
        geometry(64), [&] { seen.push_back(thread_index()); }, seed);
    return seen;
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
  std::vector<int> ascending(64);
  std::iota(ascending.begin(), ascending.end(), 0);
  CHECK(order(1) != ascending);
}

TEST_CASE("shuffles and barriers add up a block of 1024 threads") {
  std::vector<double> sums(3 * 1024);
  run_grid(
      geometry(1024, 32 * 8, 3),
      [&] {
        const SharedArray<double> slots(0);
        double value = thread_index();
        for (int mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
        if (thread_index() % 32 == 0) slots.store(thread_index() / 32, value);
        sync_block();
        value = slots.load(thread_index() % 32);
        for (int mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
        sums[static_cast<std::size_t>(kernels::block_index() * 1024 + thread_index())] = value;
      },
      seed());
  for (const double sum : sums) CHECK(sum == 1023 * 512);
}

TEST_CASE("shared memory is a NaN of every type in every block, until it is written") {
  run_grid(
      geometry(32, 16, 4),
      [] {
        const int thread = thread_index();
        if (thread == 0) {
          CHECK(std::isnan(SharedArray<float>(0).load(0)));
          CHECK(std::isnan(SharedArray<double>(8).load(0)));
          CHECK(std::isnan(kernels::widen(SharedArray<kernels::f16>(4).load(0))));
          CHECK(std::isnan(kernels::widen(SharedArray<kernels::bf16>(6).load(0))));
          SharedArray<double>(0).store(0, 1.0);
          SharedArray<double>(0).store(1, 1.0);
        }
      },
      seed());
}

TEST_CASE("a missing barrier is a race, in whatever order the threads run") {
  const auto neighbour = [] {
    const SharedArray<float> slots(0);
    slots.store(thread_index(), 1.0f);
    (void)slots.load((thread_index() + 1) % 64);
  };
  const std::string message = caught(geometry(64, 256), neighbour);
  CHECK(says(message, "shared memory, which thread"));
  CHECK(says(message, "no barrier in between"));
}

TEST_CASE("a slot that is written again before all have read it is a race") {
  const auto reuse = [] {
    const SharedArray<float> slot(0);
    for (int round = 0; round < 2; ++round) {
      if (thread_index() == 0) slot.store(0, 1.0f);
      sync_block();
      (void)slot.load(0);
    }
  };
  CHECK(says(caught(geometry(64, 4), reuse), "no barrier in between"));
}

TEST_CASE("two threads that write the same byte are a race; one that reads its own is none") {
  const auto clash = [] { SharedArray<int>(0).store(thread_index() / 2, 1); };
  CHECK(says(caught(geometry(32, 64), clash), "writes byte"));
  const auto own = [] {
    const SharedArray<int> slots(0);
    slots.store(thread_index(), thread_index());
    CHECK(slots.load(thread_index()) == thread_index());
    slots.store(thread_index(), 0);
    sync_block();
    CHECK(slots.load(31 - thread_index()) == 0);
    CHECK(slots.load(0) == 0);
  };
  run_grid(geometry(32, 128), own, seed());
}

TEST_CASE("a barrier that a thread never reaches is an error") {
  const auto early_exit = [] {
    if (thread_index() == 37) return;
    sync_block();
  };
  CHECK(says(caught(geometry(64), early_exit), "at a barrier of the block, but thread 37 (warp 1, lane 5) has exited"));
  const auto elsewhere = [] {
    if (thread_index() < 32) {
      sync_block();
    } else {
      float value = shuffle_xor(1.0f, 1);
      if (thread_index() == 40) value = shuffle_xor(value, 1);
      sync_block();
    }
  };
  CHECK(says(caught(geometry(64), elsewhere), "thread 40 (warp 1, lane 8) waits in a shuffle with lane mask 1"));
}

TEST_CASE("a shuffle with a lane missing is an error") {
  const auto exited = [] {
    if (thread_index() != 45) (void)shuffle_xor(1.0f, 4);
  };
  CHECK(says(caught(geometry(64), exited), "waits in a shuffle with lane mask 4, but thread 45 (warp 1, lane 13) has"));
  const auto cut = [] { (void)shuffle_xor(1.0f, 1); };
  CHECK(says(caught(geometry(48), cut), "its warp is not whole"));
}

TEST_CASE("lanes that shuffle with different masks are an error") {
  const auto diverged = [] { (void)shuffle_xor(1.0, thread_index() == 7 ? 2 : 1); };
  CHECK(says(caught(geometry(32), diverged), "thread 7 (warp 0, lane 7) shuffles with lane mask 2, but thread 0"));
  const auto too_far = [] { (void)shuffle_xor(1.0, 32); };
  CHECK(says(caught(geometry(64), too_far), "lane mask 32"));
}

TEST_CASE("a shared access outside of the block's allocation or misaligned is an error") {
  const auto beyond = [] { SharedArray<float>(0).store(thread_index(), 1.0f); };
  run_grid(geometry(32, 128), beyond, seed());
  CHECK(
      says(caught(geometry(32, 124), beyond), "thread 31 (warp 0, lane 31) accesses bytes 124..127 of shared memory"));
  const auto before = [] { (void)SharedArray<float>(0).load(-1); };
  CHECK(says(caught(geometry(32, 128), before), "accesses bytes -4..-1"));
  const auto crooked = [] { (void)SharedArray<double>(4).load(0); };
  CHECK(says(caught(geometry(32, 128), crooked), "not a multiple of 8"));
}

TEST_CASE("an access to global memory that is not aligned is an error") {
  std::vector<float> memory(8);
  const auto crooked = [&] {
    kernels::wait_for_predecessor({});
    (void)kernels::load_wide<float, 4>(memory.data() + 1);
  };
  CHECK(says(caught(geometry(32), crooked), "moves 16 bytes"));
  const auto crooked_store = [&] {
    kernels::wait_for_predecessor({});
    kernels::store_wide<float, 2>(memory.data() + 1, {});
  };
  CHECK(says(caught(geometry(32), crooked_store), "moves 8 bytes"));
}

TEST_CASE("a thread that touches global memory without having waited for the kernel before is an error") {
  alignas(16) float memory[64] = {};
  unsigned long long words[2] = {};
  const std::function<void()> accesses[] = {
      [&] { (void)kernels::load_one(memory); },
      [&] { kernels::store_one(memory + thread_index(), 1.0F); },
      [&] { (void)kernels::load_wide<float, 2>(memory); },
      [&] { kernels::store_wide<float, 2>(memory + 2 * thread_index(), {}); },
      [&] { kernels::copy_to_shared(16, memory, 16, kernels::CopyBarrier(0)); },
      [&] { kernels::post(words, {}, 1); },
      [&] { (void)kernels::await_post(words, 0); },
  };
  for (const auto& access : accesses) {
    CHECK(says(caught(geometry(32, 32), access), "accesses global memory without having waited for the kernel before"));
  }
  // Each thread for itself, and in every launch again.
  const auto one_thread_does_not = [&] {
    if (thread_index() != 19) kernels::wait_for_predecessor({});
    kernels::store_one(memory + thread_index(), 1.0F);
  };
  CHECK(says(caught(geometry(32), one_thread_does_not), "thread 19 (warp 0, lane 19) accesses global memory"));
  const auto all_do = [&] {
    kernels::wait_for_predecessor({});
    kernels::store_one(memory + thread_index(), 1.0F);
  };
  run_grid(geometry(32), all_do, seed());
  CHECK(says(caught(geometry(32), accesses[0]), "accesses global memory"));
}

TEST_CASE("after a failed launch the next one is as good as new") {
  (void)caught(geometry(64, 16), [] {
    if (thread_index() != 3) sync_block();
  });
  int arrived = 0;
  run_grid(
      geometry(64, 16),
      [&] {
        ++arrived;
        sync_block();
        CHECK(arrived == 64);
      },
      seed());
}

}  // namespace
}  // namespace jitsoftmax::host_test
