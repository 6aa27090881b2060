// Promise: with OnMiss::background results are right before, while and after the exact kernel takes over, and
// no caller waits for a compiler.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "cuda/stream.hpp"
#include "gpu/gpu_case.hpp"
#include "temporary_directory.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

Options background_options(const TemporaryDirectory& directory) {
  Options options = gpu_options();
  options.cache_dir = directory.path();
  options.on_miss = OnMiss::background;
  options.specialize_after = 1;
  return options;
}

}  // namespace

TEST_CASE("every type, operation and layout: right from the first launch on, by either kernel") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  Engine engine(background_options(directory));
  unsigned seed = 0;
  std::uint64_t made = 0;
  for (const auto& [in, out] : type_pairs) {
    for (const Layout layout : {Layout::contiguous, Layout::strided}) {
      const Problem problem{.cols = 1023, .in = in, .out = out, .op = Op::log_softmax, .layout = layout};
      const bool strided = layout == Layout::strided;
      GpuCase test(problem, 40, strided ? 8 : 1);
      test.fill_random(++seed);
      // By way of the engine: what it would launch now.
      const auto launch = [&] {
        const std::size_t elements = 1023 * 40;
        cuda::DeviceBuffer in_buffer(elements * 8);
        cuda::DeviceBuffer out_buffer(elements * 8);
        std::vector<unsigned char> zeros(elements * 8);
        in_buffer.upload(zeros.data(), zeros.size());
        Rows rows;
        rows.in = in_buffer.get();
        rows.out = out_buffer.get();
        rows.count = 40;
        rows.inner = strided ? 8 : 1;
        engine.softmax(problem, rows);
        cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
        std::vector<unsigned char> result(elements * static_cast<std::size_t>(size_of(out)));
        out_buffer.download(result.data(), result.size());
        return result;
      };
      const std::vector<unsigned char> first = launch();
      ++made;
      for (int i = 0; i < 10000 && engine.stats().background_made < made; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      REQUIRE(engine.stats().background_made == made);
      // Rows of equal elements have one exact answer, log(1/N), rounded once.
      CHECK(launch() == first);
      CHECK(test.check(engine.prepare(problem)) == "");
    }
  }
  CHECK(engine.stats().background_failures == 0);
}

TEST_CASE("the longest stall of a caller over 1000 new row lengths") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  Engine engine(background_options(directory));
  engine.prepare_generic({});
  constexpr std::size_t most = 6000;
  const cuda::DeviceBuffer data(most * 16 * 4);
  Rows rows;
  rows.in = rows.out = data.get();
  rows.count = 16;
  std::vector<double> stalls;
  for (std::int64_t cols = 5000; cols < 6000; ++cols) {
    const auto start = std::chrono::steady_clock::now();
    engine.softmax({.cols = cols}, rows);
    stalls.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(stalls);
  MESSAGE("longest " << stalls[999] << " us, of 99 % " << stalls[989] << " us, median " << stalls[500] << " us");
  CHECK(stalls[999] < 200);
  const auto end = std::chrono::steady_clock::now();
  { const Engine ended = std::move(engine); }
  const std::chrono::duration<double> ending = std::chrono::steady_clock::now() - end;
  MESSAGE("ended in " << ending.count() << " s, with compiles under way");
  CHECK(ending.count() < 1);
  cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
}

TEST_CASE("threads that launch while kernels are swapped get right results") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  Options options = background_options(directory);
  options.max_kernels = 4;
  Engine engine(options);
  std::vector<std::string> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        const cuda::ContextScope current(gpu.context.context());
        const cuda::OwnedStream stream = cuda::make_stream();
        constexpr std::int64_t most = 2010;
        std::vector<float> input(most * 8, 1.0F);
        cuda::DeviceBuffer in(input.size() * 4);
        cuda::DeviceBuffer out(input.size() * 4);
        in.upload(input.data(), input.size() * 4);
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < 400 && wrong[t].empty(); ++i) {
          const std::int64_t cols = 2001 + static_cast<std::int64_t>(random() % 8);
          Rows rows;
          rows.in = in.get();
          rows.out = out.get();
          rows.count = 8;
          engine.softmax({.cols = cols}, rows, stream.get());
          cuda::check(cuda::driver().StreamSynchronize(stream.get()), "cuStreamSynchronize");
          std::vector<float> got(static_cast<std::size_t>(cols * 8));
          out.download(got.data(), got.size() * 4);
          for (const float value : got)
            if (std::abs(value * static_cast<float>(cols) - 1) > 1e-5F) wrong[t] = std::to_string(cols) + " columns";
        }
      });
    }
  }
  CHECK(wrong == std::vector<std::string>(4));
}
