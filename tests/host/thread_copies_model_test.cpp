// Copies that a thread waits for itself, and barriers of a warp: the executor catches what must not happen before.
#include <doctest/doctest.h>

#include <functional>
#include <numeric>
#include <string>

#include "host/wrong_kernel.hpp"
#include "kernel_templates/device.cuh"

namespace jitsoftmax::host_test {
namespace {

using kernels::close_copies;
using kernels::SharedArray;
using kernels::start_copy;
using kernels::sync_block;
using kernels::sync_warp;
using kernels::thread_index;
using kernels::wait_for_copies;

constexpr int threads = 64;
constexpr int copied = threads * 2 * kernels::copy_bytes;

// Two copies of four numbers for every thread.
struct Row {
  alignas(16) float at[threads * 8];
  Row() { std::iota(at, at + threads * 8, 0.0f); }
};

void expect(int index) {
  const float value = SharedArray<float>(0).load(index);  // a CHECK would keep what it throws
  CHECK(value == static_cast<float>(index));
}

// What a wrong kernel reads may be anything, if it comes before the copy is started.
void touch(int index) { (void)SharedArray<float>(0).load(index); }

// The parts of a right kernel, to be left out or replaced. The copies of the threads are two groups each.
struct Parts {
  std::function<void(const float*)> copy = [](const float* from) {
    for (int group = 0; group < 2; ++group) {
      const int first = (group * threads + thread_index()) * 4;
      start_copy(first * 4, from + first);
      close_copies();
    }
  };
  std::function<void()> wait_for_first = [] { wait_for_copies<1>(); };
  std::function<void()> read_first = [] { expect(thread_index() * 4 + 3); };
  std::function<void()> wait = [] { wait_for_copies<0>(); };
  std::function<void()> sync = [] { sync_warp(); };
  std::function<void()> read = [] { expect((threads + (thread_index() ^ 1)) * 4); };  // a neighbour's
};

std::function<void()> kernel(const Row& row, const Parts& parts) {
  return [&row, parts] {
    kernels::wait_for_predecessor({});
    parts.copy(row.at);
    parts.wait_for_first();
    parts.read_first();
    parts.wait();
    parts.sync();
    parts.read();
  };
}

std::string caught_with(const Parts& parts) {
  const Row row;
  return caught(geometry(threads, copied), kernel(row, parts));
}

void nothing() {}

TEST_CASE("a thread's copies are there when it has waited, for its warp after the warp's next barrier") {
  const Row row;
  Parts of_block;
  of_block.sync = [] { sync_block(); };
  of_block.read = [] { expect((threads + (thread_index() ^ 32)) * 4); };
  for (std::uint64_t order = 0; order < 50; ++order) {
    run_grid(geometry(threads, copied, 2), kernel(row, {}), seed() + order);
    run_grid(geometry(threads, copied, 2), kernel(row, of_block), seed() + order);
  }
}

TEST_CASE("bytes of a copy are nobody's before its thread has waited for its group") {
  Parts parts;
  parts.wait_for_first = nothing;
  parts.read_first = [] { touch(thread_index() * 4 + 3); };
  CHECK(says(caught_with(parts), "brings that it has not waited for"));
  parts = {};
  parts.read_first = [] { touch((threads + thread_index()) * 4); };  // of the second group
  CHECK(says(caught_with(parts), "brings that it has not waited for"));
  parts = {};
  parts.read_first = [] { SharedArray<float>(0).store((threads + thread_index()) * 4, 1.0f); };
  CHECK(says(caught_with(parts), "brings that it has not waited for"));
  parts = {};
  parts.copy = [](const float* from) {
    start_copy(thread_index() * 16, from);
    start_copy(thread_index() * 16, from);
  };
  CHECK(says(caught_with(parts), "brings that it has not waited for"));
}

TEST_CASE("copies in no group are not waited for, and none may be left when a thread ends") {
  Parts parts;
  parts.copy = [](const float* from) {
    start_copy(thread_index() * 16, from + thread_index() * 4);
    start_copy((threads + thread_index()) * 16, from + (threads + thread_index()) * 4);
  };
  parts.wait_for_first = parts.read_first = parts.read = nothing;
  CHECK(says(caught_with(parts), "ends with copies under way"));
  parts = {};
  parts.wait = parts.read = nothing;
  CHECK(says(caught_with(parts), "ends with copies under way"));
}

TEST_CASE("what another lane has copied, or written, is behind a barrier of the warp; another warp's is not") {
  Parts parts;
  parts.sync = nothing;
  parts.read = [] { touch((threads + (thread_index() ^ 1)) * 4); };
  const std::string unsynced = caught_with(parts);
  CHECK((says(unsynced, "with no barrier in between") || says(unsynced, "has not waited for")));
  parts = {};
  parts.read = [] { touch((threads + (thread_index() ^ 32)) * 4); };
  const std::string of_other_warp = caught_with(parts);
  CHECK((says(of_other_warp, "with no barrier in between") || says(of_other_warp, "has not waited for")));
}

TEST_CASE("every lane of a warp comes to its barrier") {
  Parts parts;
  parts.sync = [] {
    if (thread_index() != 5) sync_warp();
  };
  parts.read = nothing;
  CHECK(says(caught_with(parts), "waits at a barrier of its warp, but thread 5 (warp 0, lane 5) has exited"));
}

TEST_CASE("copies are of 16 aligned bytes, within the block's memory, after the kernel before") {
  const auto with = [](std::function<void(const float*)> copy) {
    Parts parts;
    parts.copy = std::move(copy);
    return caught_with(parts);
  };
  CHECK(says(with([](const float* from) { start_copy(0, from + 1); }), "not aligned"));
  CHECK(says(with([](const float* from) { start_copy(8, from); }), "not a multiple of 16"));
  CHECK(says(with([](const float* from) { start_copy(copied, from); }), "but the block has"));
  const Row row;
  CHECK(says(caught(geometry(threads, copied), [&] { start_copy(thread_index() * 16, row.at); }),
             "without having waited for the kernel before"));
}

}  // namespace
}  // namespace jitsoftmax::host_test
