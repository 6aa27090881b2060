// The executor makes asynchronous copies at some later time and catches what must not happen before.
#include <doctest/doctest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "host/wrong_kernel.hpp"
#include "kernel_templates/device.cuh"

namespace jitsoftmax::host_test {
namespace {

using kernels::copy_to_shared;
using kernels::CopyBarrier;
using kernels::SharedArray;
using kernels::sync_block;
using kernels::thread_index;

constexpr int copied = 256;  // bytes, behind a barrier of 16
constexpr unsigned shared = 16 + copied;

// 64 numbers at an aligned address.
struct Row {
  alignas(16) float at[64];
  Row() { std::iota(at, at + 64, 0.0f); }
};

// The parts of a right kernel, to be left out or replaced.
struct Parts {
  std::function<void()> init = [] { CopyBarrier(0).init(); };
  std::function<void()> publish = [] { sync_block(); };
  std::function<void()> expect = [] { CopyBarrier(0).expect(copied); };
  std::function<void(const float*)> copy = [](const float* from) {
    copy_to_shared(16, from, copied / 2, CopyBarrier(0));
    copy_to_shared(16 + copied / 2, from + 32, copied / 2, CopyBarrier(0));
  };
  std::function<void()> wait = [] { CopyBarrier(0).wait(); };
  std::function<void()> read = [] {
    for (int i = 0; i < 64; ++i) {
      const float value = SharedArray<float>(16).load(i);  // a CHECK would keep what it throws
      CHECK(value == static_cast<float>(i));
    }
  };
};

std::function<void()> kernel(const Row& row, const Parts& parts) {
  return [&row, parts] {
    kernels::wait_for_predecessor({});
    if (thread_index() == 0) parts.init();
    parts.publish();
    if (thread_index() == 0) {
      parts.expect();
      parts.copy(row.at);
    }
    parts.wait();
    parts.read();
  };
}

std::string caught_with(const Parts& parts) {
  const Row row;
  return caught(geometry(64, shared), kernel(row, parts));
}

void nothing() {}

TEST_CASE("a copy is there for every thread that has waited, and for those after its block's next barrier") {
  const Row row;
  for (std::uint64_t order = 0; order < 50; ++order) {
    run_grid(geometry(64, shared, 2), kernel(row, {}), seed() + order);
    Parts one_waits;
    one_waits.wait = [] {
      if (thread_index() == 3) CopyBarrier(0).wait();
      sync_block();
    };
    run_grid(geometry(64, shared, 2), kernel(row, one_waits), seed() + order);
    Parts none;
    none.expect = [] { CopyBarrier(0).expect(0); };
    none.copy = [](const float*) {};
    none.read = nothing;
    run_grid(geometry(64, shared, 2), kernel(row, none), seed() + order);
  }
}

TEST_CASE("bytes that a copy brings may be read after waiting only, and not be written") {
  Parts parts;
  parts.wait = [] { sync_block(); };  // the copies have been started, which is all
  CHECK(says(caught_with(parts), "which an asynchronous copy brings, without having waited at the barrier at byte 0"));
  parts.wait = [] {
    sync_block();
    if (thread_index() == 0) CopyBarrier(0).wait();
  };
  CHECK(says(caught_with(parts), "without having waited"));
  parts.read = [] { SharedArray<float>(16).store(thread_index(), 1.0f); };
  CHECK(says(caught_with(parts), "without having waited"));
  parts.wait = parts.read = nothing;
  CHECK(says(caught_with(parts), "nobody has waited"));
}

TEST_CASE("as many bytes arrive as were expected") {
  Parts parts;
  parts.expect = [] { CopyBarrier(0).expect(copied - 16); };
  CHECK(says(caught_with(parts), "starts copies of 256 bytes, but the barrier at byte 0 of shared memory expects 240"));
  parts.expect = [] { CopyBarrier(0).expect(copied + 16); };
  CHECK(says(caught_with(parts), "expects 272 and 256 have arrived, and no copy is under way"));
  parts.expect = nothing;
  CHECK(says(caught_with(parts), "was told to expect none"));
  parts.expect = [] {
    CopyBarrier(0).expect(copied);
    CopyBarrier(0).expect(copied);
  };
  CHECK(says(caught_with(parts), "a second time"));
}

TEST_CASE("a barrier is initialized, once, before anybody uses it") {
  Parts parts;
  parts.publish = nothing;
  CHECK(says(caught_with(parts), "the barrier at byte 0 of shared memory, which"));
  parts = {};
  parts.init = nothing;
  CHECK(says(caught_with(parts), "which is not initialized"));
  parts.init = [] {
    CopyBarrier(0).init();
    CopyBarrier(0).init();
  };
  CHECK(says(caught_with(parts), "again"));
  parts.init = [] { CopyBarrier(4).init(); };
  CHECK(says(caught_with(parts), "not a multiple of 8"));
}

TEST_CASE("copies are aligned, within the block's memory, and spare the barrier") {
  const auto with = [](std::function<void(const float*)> copy) {
    Parts parts;
    parts.copy = std::move(copy);
    return caught_with(parts);
  };
  CHECK(says(with([](const float* from) { copy_to_shared(16, from + 1, 16, CopyBarrier(0)); }), "multiples of 16"));
  CHECK(says(with([](const float* from) { copy_to_shared(16, from, 8, CopyBarrier(0)); }), "multiples of 16"));
  CHECK(says(with([](const float* from) { copy_to_shared(24, from, 16, CopyBarrier(0)); }), "not a multiple of 16"));
  CHECK(
      says(with([](const float* from) { copy_to_shared(32, from, copied, CopyBarrier(0)); }), "but the block has 272"));
  CHECK(says(with([](const float* from) { copy_to_shared(0, from, copied, CopyBarrier(0)); }), "bytes of the barrier"));
  CHECK(says(with([](const float* from) {
               copy_to_shared(16, from, 32, CopyBarrier(0));
               copy_to_shared(32, from, 32, CopyBarrier(0));
             }),
             "which an asynchronous copy brings"));
}

}  // namespace
}  // namespace jitsoftmax::host_test
