// Promise: the engine behaves on a real GPU as engine.hpp says: what is prepared launches at once,
// errors come from the call that caused them, and a capture survives an error.
#include <jitsoftmax/jitsoftmax.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cache/store.hpp"
#include "cuda/stream.hpp"
#include "gpu/gpu_case.hpp"
#include "jit/compiler.hpp"
#include "plan/choice.hpp"
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

Options with_cache(const TemporaryDirectory& directory) {
  Options options = gpu_options();
  options.cache_dir = directory.path();
  return options;
}

}  // namespace

TEST_CASE("a second engine compiles nothing, and a new number of rows never does") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  const Problem problem{.cols = 777};
  {
    Engine engine(with_cache(directory));
    (void)engine.prepare(problem);
    CHECK(engine.stats().compiles > 0);
  }
  Engine engine(with_cache(directory));
  const auto start = std::chrono::steady_clock::now();
  const Kernel kernel = engine.prepare(problem);
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  MESSAGE("prepare from a warm disk: " << elapsed.count() << " ms");
  CHECK(engine.stats().compiles == 0);
  CHECK(engine.stats().disk_hits > 0);
  for (const std::int64_t rows : {1, 2, 100, 70000}) {
    GpuCase test(problem, rows);
    test.fill_random(1);
    CHECK(test.check(kernel) == "");
  }
  CHECK(engine.stats().compiles == 0);
}

TEST_CASE("nothing to compute needs neither pointers nor a kernel") {
  const Gpu gpu;
  Engine engine(gpu_options());
  engine.softmax({.cols = 12345}, Rows{});
  engine.softmax({.cols = 0}, Rows{.count = 5});
  engine.prepare({.cols = 0}).launch(Rows{.count = 5});
  CHECK(engine.stats().kernels == 0);
}

TEST_CASE("on_miss = fail names the shape and the command that would add it") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  Options options = with_cache(directory);
  options.on_miss = OnMiss::fail;
  Engine engine(options);
  CHECK(code_of([&] { (void)engine.prepare({.cols = 4321}); }) == ErrorCode::not_cached);
  options.on_miss = OnMiss::compile;
  (void)Engine(options).warmup({{.cols = 4321}}, {cuda::architecture(cuda::current_device())});
  CHECK(code_of([&] { (void)engine.prepare({.cols = 4321}); }) == ErrorCode{});
}

TEST_CASE("an entry that the driver refuses is compiled afresh and replaced, with one warning; a layer's stays") {
  const Gpu gpu;
  const Problem problem{.cols = 777};
  const Arch arch = cuda::architecture(cuda::current_device());
  const plan::Bundle bundle = plan::choose(problem, arch);
  const jit::Program program = jit::program(bundle.front(), arch);
  const cache::Key key = cache::key_of(program, jit::templates());
  jit::Compiler compiler(Options::from_environment().nvrtc, {});
  const jit::Cubin good = compiler.compile(program);

  jit::Cubin no_cubin = good;  // in order by every check but the driver's
  no_cubin.payload.assign(4096, '\0');
  std::copy_n(good.payload.begin(), 4, no_cubin.payload.begin());
  jit::Cubin no_ptx = good;
  no_ptx.kind = jit::PayloadKind::ptx;
  const std::string text = "this is no PTX\n";
  no_ptx.payload.assign(text.c_str(), text.c_str() + text.size() + 1);
  const Arch other = arch == Arch{8, 0} ? Arch{9, 0} : Arch{8, 0};
  jit::Cubin foreign = compiler.compile(jit::program(bundle.front(), other));
  jit::Cubin misnamed = good;
  misnamed.kernel = "_Z7nothingv";

  for (const jit::Cubin* refused : {&no_cubin, &no_ptx, &foreign, &misnamed}) {
    for (const bool in_layer : {false, true}) {
      const TemporaryDirectory directory;
      const std::string place = directory / (in_layer ? "layer" : "own");
      REQUIRE(cache::Store({.directory = place}).put(key, program, *refused));
      std::vector<std::string> warnings;
      Options options = gpu_options();
      options.cache_layers = {directory / "layer"};
      options.cache_dir = directory / "own";
      options.log = [&](LogLevel level, const std::string& message) {
        if (level >= LogLevel::warning) warnings.push_back(message);
      };
      options.on_miss = OnMiss::fail;
      CHECK(code_of([&] { (void)Engine(options).prepare(problem); }) == ErrorCode::not_cached);
      options.on_miss = OnMiss::compile;
      warnings.clear();
      for (const std::size_t compiles : {bundle.size(), std::size_t{0}}) {
        Engine engine(options);
        GpuCase test(problem, 9);
        test.fill_random(3);
        CHECK(test.check(engine.prepare(problem)) == "");
        CHECK(engine.stats().compiles == compiles);
      }
      MESSAGE(warnings.at(0));
      CHECK(warnings.size() == (in_layer ? 2 : 1));  // one an engine that meets it
      const auto kept = cache::Store({.directory = place}).find(key, program);
      REQUIRE(kept);
      CHECK(kept->payload == (in_layer ? refused->payload : good.payload));
    }
  }
}

TEST_CASE("a launch error is reported by the launch") {
  const Gpu gpu;
  Engine engine(gpu_options());
  const Kernel kernel = engine.prepare({.cols = 64});
  cuda::DeviceBuffer data(64 * 4);
  Rows rows;
  rows.in = rows.out = data.get();
  rows.count = 1;
  std::thread([&] {  // has no current context
    CHECK(code_of([&] { kernel.launch(rows); }) == ErrorCode::no_context);
    CHECK(code_of([&] { engine.softmax({.cols = 64}, rows); }) == ErrorCode::no_context);
  })
      .join();
  CHECK(code_of([&] { kernel.launch(rows); }) == ErrorCode{});
}

TEST_CASE("a miss during a capture is an error and the capture stays valid; a prepared kernel replays") {
  const Gpu gpu;
  Engine engine(gpu_options());
  const Problem prepared{.cols = 3000};
  const Problem unprepared{.cols = 3001};
  const Kernel kernel = engine.prepare(prepared);
  std::vector<float> input(3001 * 4, 1);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 17);
  cuda::DeviceBuffer in(input.size() * 4);
  cuda::DeviceBuffer out(input.size() * 4);
  in.upload(input.data(), input.size() * 4);
  Rows rows;
  rows.in = in.get();
  rows.out = out.get();
  rows.count = 4;
  const auto results = [&] {
    std::vector<float> values(3000 * 4);
    out.download(values.data(), values.size() * 4);
    return values;
  };
  kernel.launch(rows);
  const std::vector<float> direct = results();

  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    const cuda::OwnedStream stream = cuda::make_stream();
    cuda::check(cuda::driver().StreamBeginCapture(stream.get(), mode), "cuStreamBeginCapture");
    CHECK(code_of([&] { engine.softmax(unprepared, rows, stream.get()); }) == ErrorCode::capturing);
    engine.softmax(prepared, rows, stream.get());
    // Loading on the side, for another stream, is allowed while this one is being captured.
    (void)engine.prepare({.cols = 3100 + static_cast<std::int64_t>(mode)});
    CUgraph recorded = nullptr;
    cuda::check(cuda::driver().StreamEndCapture(stream.get(), &recorded), "cuStreamEndCapture");
    const cuda::OwnedGraph graph(recorded);
    CUgraphExec raw = nullptr;
    cuda::check(cuda::driver().GraphInstantiateWithFlags(&raw, graph.get(), 0), "cuGraphInstantiateWithFlags");
    const cuda::OwnedGraphExec exec(raw);
    cuda::check(cuda::driver().MemsetD8(reinterpret_cast<CUdeviceptr>(out.get()), 0, 3000 * 4 * 4), "cuMemsetD8");
    for (int i = 0; i < 100; ++i) cuda::check(cuda::driver().GraphLaunch(exec.get(), stream.get()), "cuGraphLaunch");
    cuda::check(cuda::driver().StreamSynchronize(stream.get()), "cuStreamSynchronize");
    CHECK(results() == direct);
  }
}

TEST_CASE("a kernel outlives its engine") {
  const Gpu gpu;
  Kernel kernel;
  {
    Engine engine(gpu_options());
    kernel = engine.prepare({.cols = 100});
  }
  GpuCase test({.cols = 100}, 9);
  test.fill_random(2);
  CHECK(test.check(kernel) == "");
}

TEST_CASE("many threads ask one engine for the same and for different problems") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  Engine engine(with_cache(directory));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      const cuda::ContextScope current(gpu.context.context());
      GpuCase test({.cols = 500 + t % 4}, 5);
      test.fill_random(static_cast<unsigned>(t));
      const std::string wrong = test.check(engine.prepare({.cols = 500 + t % 4}));
      CHECK(wrong == "");
    });
  }
  threads.clear();
  // 500 has a kernel for aligned rows and one for any, the others the latter.
  CHECK(engine.stats().compiles == 5);
}

void disturb(const Problem& problem, std::int64_t count) {
  CAPTURE(problem.cols);
  const Gpu gpu;
  Engine engine(gpu_options());
  const Kernel kernel = engine.prepare(problem);
  const auto elements = static_cast<std::size_t>(problem.cols * count);
  std::vector<float> input(elements);
  std::mt19937 random(9);
  for (float& x : input) x = static_cast<float>(random() % 1000) / 100;
  cuda::DeviceBuffer in(elements * 4);
  cuda::DeviceBuffer first(elements * 4);
  cuda::DeviceBuffer second(elements * 4);
  in.upload(input.data(), elements * 4);
  Rows rows;
  rows.in = in.get();
  rows.out = first.get();
  rows.count = count;
  kernel.launch(rows);
  std::vector<float> expected(elements);
  first.download(expected.data(), elements * 4);

  const cuda::OwnedStream a = cuda::make_stream();
  const cuda::OwnedStream b = cuda::make_stream();
  const cuda::OwnedStream c = cuda::make_stream();
  cuda::DeviceBuffer third(elements * 4);
  rows.out = third.get();
  const cuda::OwnedGraphExec graph = cuda::capture(c.get(), [&] {
    kernel.launch(rows, c.get());
    kernel.launch(rows, c.get());
  });
  std::vector<float> got(elements);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 50; ++i) {
      rows.out = first.get();
      kernel.launch(rows, a.get());
      rows.out = second.get();
      kernel.launch(rows, b.get());
      cuda::check(cuda::driver().GraphLaunch(graph.get(), c.get()), "cuGraphLaunch");
    }
    cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
    for (cuda::DeviceBuffer* out : {&first, &second, &third}) {
      out->download(got.data(), elements * 4);
      REQUIRE(got == expected);
    }
  }
}

TEST_CASE("two streams and a graph at once do not disturb each other") { disturb({.cols = 131072}, 128); }
TEST_CASE("nor do rows that blocks all over the device share") { disturb({.cols = 1 << 20}, 3); }

TEST_CASE("Device::cuda needs no current context and leaves none") {
  Options options = Options::from_environment();
  options.device = Device::cuda(0);
  Engine engine(options);
  const Kernel kernel = engine.prepare({.cols = 96});
  CUcontext current = nullptr;
  cuda::check(cuda::driver().CtxGetCurrent(&current), "cuCtxGetCurrent");
  CHECK(current == nullptr);
  const Gpu gpu;  // for the buffers
  GpuCase test({.cols = 96}, 9);
  test.fill_random(2);
  CHECK(test.check(kernel) == "");
  CHECK(code_of([] {
          Options impossible;
          impossible.device = Device::cuda(1000);
          Engine{impossible};
        }) == ErrorCode::invalid_argument);
}

TEST_CASE("the C API computes on the GPU") {
  const Gpu gpu;
  jitsoftmax_engine* engine = nullptr;
  REQUIRE(jitsoftmax_create("current", &engine) == JITSOFTMAX_OK);
  const std::vector<float> input{1, 2, 3, 4, 5};
  cuda::DeviceBuffer data(20);
  data.upload(input.data(), 20);
  const jitsoftmax_problem problem{5, JITSOFTMAX_F32, JITSOFTMAX_F32, JITSOFTMAX_SOFTMAX, JITSOFTMAX_CONTIGUOUS};
  const jitsoftmax_rows rows{data.get(), data.get(), 1, 0, 0, 1, 1.0F};
  CHECK(jitsoftmax_softmax(engine, &problem, &rows, nullptr) == JITSOFTMAX_OK);
  std::vector<float> output(5);
  data.download(output.data(), 20);
  CHECK(output[4] == doctest::Approx(0.63640865));
  jitsoftmax_destroy(engine);
}
