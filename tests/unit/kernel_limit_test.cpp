// Promise: an engine with max_kernels unloads what was not used for the longest, and never what somebody
// holds, what runs, or what a graph has.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/stream.hpp"
#include "stand_in/engine_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

Options limited(std::size_t max_kernels) {
  Options options = stand_in_options();
  options.max_kernels = max_kernels;
  return options;
}

// Of odd length: one specialization, so one library.
Problem problem_of(int i) { return {.cols = 1001 + 2 * i}; }

void use(Engine& engine, int i, Stream stream = nullptr) { engine.softmax(problem_of(i), some_rows(), stream); }

// Whether using it again loads it again.
bool is_loaded(Engine& engine, int i) {
  const int before = stand_in::loads();
  use(engine, i);
  return stand_in::loads() == before;
}

}  // namespace

TEST_CASE("what was not used for the longest goes, and comes back when it is asked for") {
  const CurrentDevice device;
  const int before = stand_in::loaded_libraries();
  Engine engine(limited(3));
  for (int i = 0; i < 3; ++i) use(engine, i);
  use(engine, 0);
  use(engine, 3);  // in the place of 1
  CHECK(stand_in::loaded_libraries() == before + 3);
  CHECK(engine.stats().evictions == 1);
  CHECK(is_loaded(engine, 0));
  CHECK(is_loaded(engine, 2));
  CHECK(is_loaded(engine, 3));
  CHECK_FALSE(is_loaded(engine, 1));
  CHECK(stand_in::loaded_libraries() == before + 3);
  CHECK(stand_in::violations().empty());
}

TEST_CASE("a Kernel keeps its code, however old, and lets it go with its last copy") {
  const CurrentDevice device;
  const int before = stand_in::loaded_libraries();
  Engine engine(limited(1));
  Kernel kernel = engine.prepare(problem_of(0));
  Kernel copy = kernel;
  kernel = {};
  for (int i = 1; i < 5; ++i) use(engine, i);
  copy.launch(some_rows());
  CHECK(is_loaded(engine, 0));
  copy = {};
  use(engine, 6);
  CHECK(stand_in::loaded_libraries() == before + 1);
  CHECK(stand_in::violations().empty());
}

TEST_CASE("code that runs is unloaded when it has ended") {
  const CurrentDevice device;
  const int before = stand_in::loaded_libraries();
  Engine engine(limited(1));
  const cuda::OwnedStream slow = cuda::make_stream();
  const cuda::OwnedStream quick = cuda::make_stream();
  stand_in::hold(slow.get());
  use(engine, 0, slow.get());
  use(engine, 0, quick.get());
  { engine.prepare(problem_of(1)).launch(some_rows(), slow.get()); }
  for (int i = 2; i < 5; ++i) use(engine, i);
  CHECK(stand_in::loaded_libraries() == before + 3);  // the two that run, and the one that is allowed
  stand_in::finish(slow.get());
  use(engine, 5);
  CHECK(stand_in::loaded_libraries() == before + 1);
  CHECK(stand_in::violations().empty());
}

TEST_CASE("code that a thread is about to launch stays until it has") {
  const CurrentDevice device;
  const int before = stand_in::loaded_libraries();
  Engine engine(limited(1));
  use(engine, 0);
  stand_in::hold_launches(true);
  std::jthread launching([&] {
    const CurrentDevice mine;
    use(engine, 0);
  });
  REQUIRE(comes_true([] { return stand_in::entered() == 1; }));
  for (int i = 1; i < 4; ++i) (void)engine.prepare(problem_of(i));
  CHECK(engine.stats().evictions == 3);
  CHECK(stand_in::loaded_libraries() == before + 2);
  stand_in::hold_launches(false);
  launching.join();
  (void)engine.prepare(problem_of(4));
  CHECK(stand_in::loaded_libraries() == before + 1);
  CHECK(stand_in::violations().empty());
}

TEST_CASE("code that a graph has stays, whoever launched it there") {
  const CurrentDevice device;
  Engine engine(limited(1));
  const cuda::OwnedStream stream = cuda::make_stream();
  (void)engine.prepare(problem_of(0));
  const cuda::OwnedGraphExec by_engine = cuda::capture(stream.get(), [&] { use(engine, 0, stream.get()); });
  const Kernel held = engine.prepare(problem_of(1));
  const cuda::OwnedGraphExec by_kernel =
      cuda::capture(stream.get(), [&] { Kernel(held).launch(some_rows(), stream.get()); });
  for (int i = 2; i < 6; ++i) use(engine, i);
  for (const auto* exec : {&by_engine, &by_kernel})
    cuda::check(cuda::driver().GraphLaunch(exec->get(), stream.get()), "cuGraphLaunch");
  CHECK(stand_in::violations().empty());
}

TEST_CASE("evicting while a stream is being captured leaves the capture as it is") {
  const CurrentDevice device;
  Engine engine(limited(1));
  use(engine, 0);
  const cuda::OwnedStream stream = cuda::make_stream();
  cuda::check(cuda::driver().StreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  (void)engine.prepare(problem_of(1));
  (void)engine.prepare(problem_of(2));
  CUgraph graph = nullptr;
  CHECK(cuda::driver().StreamEndCapture(stream.get(), &graph) == CUDA_SUCCESS);
  const cuda::OwnedGraph owned(graph);
  CHECK(engine.stats().evictions > 0);
}

TEST_CASE("more streams than can be followed keep the code") {
  const CurrentDevice device;
  Engine engine(limited(1));
  std::vector<cuda::OwnedStream> streams;
  for (int i = 0; i < 20; ++i) streams.push_back(cuda::make_stream());
  for (const cuda::OwnedStream& stream : streams) use(engine, 0, stream.get());
  use(engine, 1);
  use(engine, 2);
  CHECK(is_loaded(engine, 0));
}

TEST_CASE("with OnMiss::background the generic kernel serves what was evicted, and is not evicted") {
  const CurrentDevice device;
  Options options = limited(2);
  options.on_miss = OnMiss::background;
  options.specialize_after = 1;
  Engine engine(options);
  for (int i = 0; i < 6; ++i) {
    use(engine, i);
    REQUIRE(comes_true([&] { return engine.stats().background_made == static_cast<std::uint64_t>(i) + 1; }));
  }
  CHECK(engine.stats().evictions == 4);
  for (int i = 60; i < 66; ++i) (void)engine.prepare(problem_of(i));
  const int loads = stand_in::loads();
  stand_in::hold_compiles(true);
  use(engine, 50);  // by the generic kernel that is there
  CHECK(stand_in::loads() == loads);
  stand_in::hold_compiles(false);
  (void)stand_in::take_launches();
  use(engine, 0);
  CHECK(is_generic(stand_in::take_launches().at(0)));
  CHECK(comes_true([&] {
    use(engine, 0);
    return !is_generic(stand_in::take_launches().at(0));
  }));
}

TEST_CASE("threads that use more kernels than there is room for always launch one that is loaded") {
  const CurrentDevice device;
  for (const OnMiss on_miss : {OnMiss::compile, OnMiss::background}) {
    Options options = limited(3);
    options.on_miss = on_miss;
    options.specialize_after = 1;
    options.workers = 2;
    Engine engine(options);
    (void)stand_in::take_launches();
    std::atomic<std::size_t> used = 0;
    // In the background kernels come in their own time, and with them what has to leave.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto goes_on = [&](int i) {
      return i < 300 || (engine.stats().evictions == 0 && std::chrono::steady_clock::now() < deadline);
    };
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < 6; ++t) {
        threads.emplace_back([&, t] {
          const CurrentDevice mine;
          unsigned random = t + 1;
          for (int i = 0; goes_on(i); ++i) {
            random = random * 1664525 + 1013904223;
            use(engine, static_cast<int>(random >> 24) % 12);
            ++used;
          }
        });
      }
    }
    CHECK(engine.stats().evictions > 0);
    const std::vector<stand_in::Launch> launches = stand_in::take_launches();
    CHECK(launches.size() == used);
    CHECK(std::ranges::all_of(launches, is_right));
    CHECK(stand_in::violations().empty());
  }
}
