// Promise: on a real GPU as between the stand-ins: streams of every kind, captures in every mode, several
// contexts, a context that was reset, a fork; results are right or the error says what to do.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "cuda/stream.hpp"
#include "gpu/driver_calls.hpp"
#include "gpu/gpu_case.hpp"
#include "temporary_directory.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    MESSAGE(error.what());
    return error.code();
  }
  return ErrorCode{};
}

// Rows with their results, on the device.
class OnDevice {
 public:
  OnDevice(std::int64_t cols, std::int64_t count)
      : elements_(static_cast<std::size_t>(cols * count)), in_(elements_ * 4), out_(elements_ * 4) {
    std::vector<float> input(elements_);
    for (std::size_t i = 0; i < elements_; ++i) input[i] = static_cast<float>(i % 23) / 4;
    in_.upload(input.data(), elements_ * 4);
    rows.in = in_.get();
    rows.out = out_.get();
    rows.count = count;
  }

  Rows rows;

  void clear() { cuda::check(cuda::driver().MemsetD8(address(), 0, elements_ * 4), "cuMemsetD8"); }
  [[nodiscard]] std::vector<float> results() const {
    cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
    std::vector<float> values(elements_);
    out_.download(values.data(), elements_ * 4);
    return values;
  }

 private:
  [[nodiscard]] CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(out_.get()); }

  std::size_t elements_;
  cuda::DeviceBuffer in_;
  cuda::DeviceBuffer out_;
};

}  // namespace

TEST_CASE("streams of every kind give the same bits") {
  const Gpu gpu;
  Engine engine(gpu_options());
  const Kernel kernel = engine.prepare({.cols = 3000});
  OnDevice data(3000, 64);
  kernel.launch(data.rows);
  const std::vector<float> expected = data.results();
  CUstream blocking = nullptr;
  cuda::check(cuda::driver().StreamCreate(&blocking, CU_STREAM_DEFAULT), "cuStreamCreate");
  const cuda::OwnedStream owned(blocking);
  const cuda::OwnedStream unblocking = cuda::make_stream();
  for (const CUstream stream : {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, blocking, unblocking.get()}) {
    data.clear();
    cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
    kernel.launch(data.rows, stream);
    CHECK(data.results() == expected);
  }
}

TEST_CASE("a captured kernel replays 1000 times with the same bits, in every mode, and a miss spares the capture") {
  const Gpu gpu;
  Engine engine(gpu_options());
  const Problem problem{.cols = 3000};
  (void)engine.prepare(problem);
  OnDevice data(3000, 64);
  engine.softmax(problem, data.rows);
  const std::vector<float> expected = data.results();
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    const cuda::OwnedStream stream = cuda::make_stream();
    cuda::check(cuda::driver().StreamBeginCapture(stream.get(), mode), "cuStreamBeginCapture");
    Rows fewer = data.rows;
    fewer.count = 32;
    CHECK(code_of([&] { engine.softmax({.cols = 3001}, fewer, stream.get()); }) == ErrorCode::capturing);
    engine.softmax(problem, data.rows, stream.get());
    std::thread([&] {
      const cuda::ContextScope current(gpu.context.context());
      CHECK(code_of([&] { (void)engine.prepare({.cols = 3200 + static_cast<std::int64_t>(mode)}); }) == ErrorCode{});
    }).join();
    CUgraph recorded = nullptr;
    cuda::check(cuda::driver().StreamEndCapture(stream.get(), &recorded), "cuStreamEndCapture");
    const cuda::OwnedGraph graph(recorded);
    CUgraphExec raw = nullptr;
    cuda::check(cuda::driver().GraphInstantiateWithFlags(&raw, graph.get(), 0), "cuGraphInstantiateWithFlags");
    const cuda::OwnedGraphExec exec(raw);
    for (int i = 0; i < 1000; ++i) {
      if (i % 250 == 0) data.clear();
      cuda::check(cuda::driver().GraphLaunch(exec.get(), stream.get()), "cuGraphLaunch");
      if (i % 250 == 249) CHECK(data.results() == expected);
    }
  }
}

TEST_CASE("a second context on the device runs the kernel too, and the first one still does") {
  const DriverCalls calls;
  const Gpu gpu;
  Engine engine(gpu_options());
  // A cluster of blocks and much shared memory: what has attributes to be set.
  for (const std::int64_t cols : {3000, 65536}) {
    const Kernel kernel = engine.prepare({.cols = cols});
    CUcontext other = nullptr;
    cuda::check(calls.CtxCreate(&other, 0, 0), "cuCtxCreate");
    {
      GpuCase test({.cols = cols}, 5);
      test.fill_random(3);
      CHECK(test.check(kernel) == "");
    }
    cuda::check(calls.CtxDestroy(other), "cuCtxDestroy");
    const cuda::ContextScope first(gpu.context.context());
    GpuCase test({.cols = cols}, 5);
    test.fill_random(4);
    CHECK(test.check(kernel) == "");
  }
}

TEST_CASE("after its context is gone a thread gets no_context, and other contexts go on") {
  const DriverCalls calls;
  const Gpu gpu;
  Engine engine(gpu_options());
  const Kernel kernel = engine.prepare({.cols = 3000});
  Rows rows;
  rows.in = rows.out = reinterpret_cast<void*>(256);
  rows.count = 1;
  std::thread([&] {
    CUcontext own = nullptr;
    cuda::check(calls.CtxCreate(&own, 0, 0), "cuCtxCreate");
    cuda::check(calls.CtxDestroy(own), "cuCtxDestroy");
    CHECK(code_of([&] { kernel.launch(rows); }) == ErrorCode::no_context);
    CHECK(code_of([&] { engine.softmax({.cols = 3000}, rows); }) == ErrorCode::no_context);
  }).join();
  GpuCase test({.cols = 3000}, 5);
  test.fill_random(4);
  CHECK(test.check(kernel) == "");
}

TEST_CASE("a reset of the primary context: kernels work again, or the error is clear, and a new engine works") {
  const DriverCalls calls;
  for (const bool limited : {false, true}) {
    const Gpu gpu;
    Options options = gpu_options();
    if (limited) options.max_kernels = 1;
    Engine engine(options);
    for (const std::int64_t cols : {3000, 65536}) {
      Kernel kernel = engine.prepare({.cols = cols});
      {
        OnDevice data(cols, 4);
        kernel.launch(data.rows);
        (void)data.results();
      }
      cuda::check(calls.DevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
      std::thread([&] {
        const Gpu again;
        GpuCase test({.cols = cols}, 5);
        test.fill_random(5);
        for (const bool handle : {true, false}) {
          const ErrorCode code =
              code_of([&] { CHECK(test.check(handle ? kernel : engine.prepare({.cols = cols})) == ""); });
          MESSAGE("N " << cols << ", after the reset: error code " << static_cast<int>(code));
          CHECK((code == ErrorCode{} || code == ErrorCode::no_context || code == ErrorCode::driver_error));
        }
      }).join();
    }
  }
  const Gpu gpu;
  Engine engine(gpu_options());
  GpuCase test({.cols = 3000}, 5);
  test.fill_random(6);
  CHECK(test.check(engine.prepare({.cols = 3000})) == "");
}

TEST_CASE("an engine and its Kernel that end while their code runs leave right results") {
  const Gpu gpu;
  constexpr std::int64_t cols = 20001;
  constexpr std::int64_t count = 4000;
  OnDevice data(cols, count);
  Engine reference(gpu_options());
  reference.softmax({.cols = cols}, data.rows);
  const std::vector<float> expected = data.results();
  data.clear();
  const cuda::OwnedStream stream = cuda::make_stream();
  {
    Engine engine(gpu_options());
    const Kernel kernel = engine.prepare({.cols = cols});
    for (int i = 0; i < 20; ++i) kernel.launch(data.rows, stream.get());
  }
  CHECK(data.results() == expected);
}

TEST_CASE("max_kernels: more problems than room, on several streams, all right") {
  const Gpu gpu;
  Options options = gpu_options();
  options.max_kernels = 3;
  Engine engine(options);
  const cuda::OwnedStream first = cuda::make_stream();
  const cuda::OwnedStream second = cuda::make_stream();
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t cols = 700; cols < 708; ++cols) {
      OnDevice data(cols, 2000);
      engine.softmax({.cols = cols}, data.rows, (cols % 2 != 0 ? first : second).get());
      const std::vector<float> got = data.results();
      data.clear();
      engine.prepare({.cols = cols}).launch(data.rows);
      CHECK(data.results() == got);
    }
  }
  CHECK(engine.stats().evictions > 0);
}

TEST_CASE("a forked child of a process that used CUDA gets a clear error, and ends well") {
  const Gpu gpu;
  auto engine = std::make_unique<Engine>(gpu_options());
  const Kernel kernel = engine->prepare({.cols = 3000});
  const pid_t child = ::fork();
  if (child == 0) {
    Rows rows;
    rows.in = rows.out = reinterpret_cast<void*>(256);
    rows.count = 1;
    int wrong = 0;
    for (const auto& use : std::vector<std::function<void()>>{[&] { kernel.launch(rows); },
                                                              [&] { engine->softmax({.cols = 3000}, rows); }}) {
      try {
        use();
        ++wrong;
      } catch (const Error& error) {
        if (std::string(error.what()).find("fork") == std::string::npos) ++wrong;
      }
    }
    engine.reset();
    ::_exit(wrong);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
