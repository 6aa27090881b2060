// Promise: streams of every kind, captures in every mode, several contexts and devices, threads without a
// context, a fork: the right kernel runs in the right place, or the error says what to do.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/stream.hpp"
#include "stand_in/engine_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

constexpr CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_RELAXED};

constexpr Problem prepared{.cols = 4096};

cuda::OwnedStream stream_with(unsigned flags) {
  CUstream stream = nullptr;
  cuda::check(cuda::driver().StreamCreate(&stream, flags), "cuStreamCreate");
  return cuda::OwnedStream(stream);
}

// Runs the body between the begin and the end of a capture, and checks that it ends well.
template <class Body>
cuda::OwnedGraph captured(CUstream stream, CUstreamCaptureMode mode, Body body) {
  cuda::check(cuda::driver().StreamBeginCapture(stream, mode), "cuStreamBeginCapture");
  body();
  CUgraph graph = nullptr;
  CHECK(cuda::driver().StreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  return cuda::OwnedGraph(graph);
}

int child_says(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  // A child that hangs is one that fails.
  for (int i = 0; i < 1000; ++i) {
    if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return 255;
}

}  // namespace

TEST_CASE("a launch is on the stream that it was given, of whichever kind") {
  const CurrentDevice device;
  Engine engine(stand_in_options());
  const Kernel kernel = engine.prepare(prepared);
  const cuda::OwnedStream blocking = stream_with(CU_STREAM_DEFAULT);
  const cuda::OwnedStream unblocking = stream_with(CU_STREAM_NON_BLOCKING);
  (void)stand_in::take_launches();
  for (const CUstream stream : {CUstream{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, blocking.get(), unblocking.get()}) {
    kernel.launch(some_rows(), stream);
    engine.softmax(prepared, some_rows(), stream);
    const std::vector<stand_in::Launch> launches = stand_in::take_launches();
    REQUIRE(launches.size() == 2);
    for (const stand_in::Launch& launch : launches) CHECK(launch.stream == stream);
  }
}

TEST_CASE("a prepared kernel is captured and replayed; an unprepared one is an error that spares the capture") {
  const CurrentDevice device;
  for (const CUstreamCaptureMode mode : modes) {
    Engine engine(stand_in_options());
    const Kernel kernel = engine.prepare(prepared);
    for (const unsigned flags : {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING}) {
      const cuda::OwnedStream stream = stream_with(flags);
      (void)stand_in::take_launches();
      const cuda::OwnedGraph graph = captured(stream.get(), mode, [&] {
        CHECK(code_of([&] { engine.softmax({.cols = 4098}, some_rows(), stream.get()); }) == ErrorCode::capturing);
        kernel.launch(some_rows(), stream.get());
        engine.softmax(prepared, some_rows(), stream.get());
        // Work that is not for this stream: loading beside it.
        (void)engine.prepare({.cols = 4100 + static_cast<std::int64_t>(mode)});
        std::thread([&] {
          const CurrentDevice mine;
          (void)engine.prepare({.cols = 4110 + static_cast<std::int64_t>(mode)});
          CHECK(code_of([&] { engine.softmax({.cols = 4098}, some_rows(), stream.get()); }) == ErrorCode::capturing);
        }).join();
      });
      CHECK(stand_in::take_launches().empty());
      CUgraphExec raw = nullptr;
      cuda::check(cuda::driver().GraphInstantiateWithFlags(&raw, graph.get(), 0), "cuGraphInstantiateWithFlags");
      const cuda::OwnedGraphExec exec(raw);
      for (int i = 0; i < 1000; ++i) cuda::check(cuda::driver().GraphLaunch(exec.get(), stream.get()), "cuGraphLaunch");
      CHECK(stand_in::take_launches().size() == 2000);
    }
  }
  CHECK(stand_in::violations().empty());
}

TEST_CASE("a miss on the legacy stream, which a capture elsewhere forbids, is the same error") {
  const CurrentDevice device;
  Engine engine(stand_in_options());
  const cuda::OwnedStream stream = stream_with(CU_STREAM_DEFAULT);
  (void)captured(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL,
                 [&] { CHECK(code_of([&] { engine.softmax({.cols = 4200}, some_rows()); }) == ErrorCode::capturing); });
}

TEST_CASE("with OnMiss::background a capture gets the generic kernel, if that is ready") {
  const CurrentDevice device;
  Options options = stand_in_options();
  options.on_miss = OnMiss::background;
  options.specialize_after = 1;
  for (const CUstreamCaptureMode mode : modes) {
    Engine engine(options);
    const cuda::OwnedStream stream = stream_with(CU_STREAM_NON_BLOCKING);
    (void)captured(stream.get(), mode, [&] {
      CHECK(code_of([&] { engine.softmax({.cols = 4301}, some_rows(), stream.get()); }) == ErrorCode::capturing);
    });
    engine.prepare_generic({});
    (void)captured(stream.get(), mode, [&] {
      engine.softmax({.cols = 4301}, some_rows(), stream.get());
      // The worker loads the exact one while the capture goes on.
      CHECK(comes_true([&] { return engine.stats().background_made == 1; }));
    });
  }
  CHECK(stand_in::violations().empty());
}

TEST_CASE("a kernel runs in whichever context is current, on either device") {
  Engine engine(stand_in_options());
  Kernel kernel;
  {
    const CurrentDevice device;
    kernel = engine.prepare(prepared);
  }
  const int loads = stand_in::loads();
  for (const CUcontext context :
       {stand_in::make_context(0), stand_in::primary_context(0), stand_in::primary_context(1)}) {
    stand_in::set_current(context);
    (void)stand_in::take_launches();
    kernel.launch(some_rows());
    CHECK(stand_in::take_launches().at(0).context == context);
  }
  CHECK(stand_in::loads() == loads);
  engine.softmax(prepared, some_rows());  // on device 1, which has kernels of its own
  CHECK(stand_in::loads() > loads);
  stand_in::set_current(nullptr);
}

TEST_CASE("a thread without a context gets an error that says so, and so does one whose context is gone") {
  Options options = stand_in_options();
  for (const OnMiss on_miss : {OnMiss::compile, OnMiss::background}) {
    options.on_miss = on_miss;
    Engine engine(options);
    stand_in::set_current(stand_in::make_context(0));
    const Kernel kernel = engine.prepare(prepared);
    stand_in::destroy_context(stand_in::current_context());
    for (int i = 0; i < 2; ++i) {
      CHECK(code_of([&] { kernel.launch(some_rows()); }) == ErrorCode::no_context);
      CHECK(code_of([&] { engine.softmax(prepared, some_rows()); }) == ErrorCode::no_context);
      CHECK(code_of([&] { engine.softmax({.cols = 99}, some_rows()); }) == ErrorCode::no_context);
      CHECK(code_of([&] { (void)engine.prepare({.cols = 98}); }) == ErrorCode::no_context);
      CHECK(code_of([&] { (void)engine.prepare_async({.cols = 98}).get(); }) == ErrorCode::no_context);
      stand_in::set_current(nullptr);
    }
    const CurrentDevice device;
    kernel.launch(some_rows());  // the code did not go with that context
  }
  CHECK(stand_in::violations().empty());
}

TEST_CASE("an engine of one device works from any thread, leaves its context alone, and makes none elsewhere") {
  Options options = stand_in_options();
  options.device = Device::cuda(0);
  options.on_miss = OnMiss::background;
  options.specialize_after = 1;
  Engine engine(options);
  const int elsewhere = stand_in::contexts_on(1);
  (void)stand_in::take_launches();
  std::thread([&] {
    engine.softmax({.cols = 501}, some_rows());
    CHECK(stand_in::current_context() == nullptr);
    stand_in::set_current(stand_in::primary_context(1));
    engine.softmax({.cols = 501}, some_rows());
    CHECK(stand_in::current_context() == stand_in::primary_context(1));
    stand_in::set_current(nullptr);
  }).join();
  CHECK(comes_true([&] { return engine.stats().background_made == 1; }));
  for (const stand_in::Launch& launch : stand_in::take_launches())
    CHECK(launch.context == stand_in::primary_context(0));
  CHECK(stand_in::contexts_on(1) <= std::max(elsewhere, 1));  // this test's
}

TEST_CASE("a load that the driver refuses is an error of that call, and is tried again") {
  const CurrentDevice device;
  Engine engine(stand_in_options());
  stand_in::fail_loads(100, CUDA_ERROR_INVALID_IMAGE);
  CHECK(code_of([&] { (void)engine.prepare({.cols = 601}); }) == ErrorCode::driver_error);
  stand_in::fail_loads(0, CUDA_SUCCESS);
  engine.softmax({.cols = 601}, some_rows());
}

TEST_CASE("a Kernel outlives its engine") {
  const CurrentDevice device;
  Kernel kernel;
  {
    Engine engine(stand_in_options());
    kernel = engine.prepare({.cols = 701});
  }
  kernel.launch(some_rows());
  CHECK(stand_in::violations().empty());
}

TEST_CASE("a forked child gets a clear error, and can end its engines, whatever their workers did") {
  const CurrentDevice device;
  Options options = stand_in_options();
  options.on_miss = OnMiss::background;
  options.specialize_after = 1;
  auto engine = std::make_unique<Engine>(options);
  const Kernel kernel = engine->prepare({.cols = 801});
  stand_in::hold_compiles(true);
  engine->prepare_async({.cols = 803});
  REQUIRE(comes_true([] { return stand_in::waiting() == 1; }));
  CHECK(child_says([&] {
          for (const auto& use : std::vector<std::function<void()>>{
                   [&] { kernel.launch(some_rows()); }, [&] { engine->softmax({.cols = 801}, some_rows()); },
                   [&] { (void)engine->prepare({.cols = 805}); }}) {
            try {
              use();
              return 1;
            } catch (const Error& error) {
              if (error.code() != ErrorCode::driver_error || !has(error.what(), "fork")) return 2;
            }
          }
          engine.reset();
          return 0;
        }) == 0);
  stand_in::hold_compiles(false);
  kernel.launch(some_rows());
}

TEST_CASE("what a forked child asks for later it is told it will not get") {
  Options options = stand_in_options();
  options.device = Device::host();
  Engine engine(options);
  (void)engine.prepare_async({.cols = 5}).get();
  CHECK(child_says([&] {
          return code_of([&] { (void)engine.prepare_async({.cols = 5}).get(); }) == ErrorCode::cancelled ? 0 : 1;
        }) == 0);
}
