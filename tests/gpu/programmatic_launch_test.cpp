// Promise: with Options::programmatic_launch kernels begin while the one before them is still running, and are right
// all the same: they read what it writes last, and what comes after them overwrites nothing that they still read.
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "cuda/module.hpp"
#include "cuda/stream.hpp"
#include "gpu/gpu_case.hpp"
#include "jit/compiler.hpp"
#include "jit/source.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

// Both copy arguments.cols words of 4 bytes. The first one lets its successor start at once and writes after
// arguments.rows cycles; the other one begins early as well, and does not wait for who comes before.
constexpr const char* copies = R"(#include "device.cuh"
using namespace jitsoftmax::kernels;
void copy_words(const Arguments& arguments) {
  const long long step = grid_blocks() * blockDim.x;
  for (long long i = block_index() * blockDim.x + thread_index(); i < arguments.cols; i += step)
    static_cast<volatile unsigned*>(arguments.out)[i] = static_cast<const volatile unsigned*>(arguments.in)[i];
}
__global__ void late_copy(const Arguments arguments) {
  let_successor_start(arguments);
  wait_for_predecessor(arguments);
  const long long begin = clock64();
  while (clock64() - begin < arguments.rows) {}
  copy_words(arguments);
}
__global__ void rash_copy(const Arguments arguments) { copy_words(arguments); }
)";
constexpr unsigned threads = 256;
constexpr unsigned blocks = 16;
constexpr std::int64_t cycles = 300'000;  // 0.2 ms: many times what the host takes for the next launch

class Copy {
 public:
  explicit Copy(const char* name) : kernel_(load(name)) {}

  void launch(void* to, const void* from, std::size_t words, CUstream stream) const {
    const bool programmatic = cuda::architecture(cuda::current_device()).major >= 9;
    kernels::Arguments arguments{.out = to,
                                 .in = from,
                                 .rows = cycles,
                                 .cols = static_cast<long long>(words),
                                 .programmatic = programmatic ? 1 : 0};
    cuda::launch(kernel_.function(), {.grid = blocks, .block = threads, .programmatic = programmatic}, stream,
                 &arguments);
  }

 private:
  static cuda::LoadedKernel load(const char* name) {
    const Arch arch = cuda::architecture(cuda::current_device());
    jit::Program program = jit::program("device.cuh", name, arch);
    program.text = copies;
    jit::Compiler compiler(Options::from_environment().nvrtc, {});
    return {compiler.compile_for_device(program), cuda::LaunchShape{.block = threads}};
  }

  cuda::LoadedKernel kernel_;
};

void synchronize() { cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize"); }

Options options_with(bool programmatic, const std::string& family = "") {
  Options options = gpu_options();
  options.programmatic_launch = programmatic;
  if (!family.empty()) options.variant.family = family;
  return options;
}

using Bits = std::vector<std::uint32_t>;

// Two inputs of f32 in turn, one buffer that a late copy brings them to, and the results of some launches.
class Chain {
 public:
  static constexpr std::size_t links = 6;

  Chain(const Problem& problem, std::int64_t count)
      : words_(static_cast<std::size_t>(problem.cols * count)),
        sources_{cuda::DeviceBuffer(words_ * 4), cuda::DeviceBuffer(words_ * 4)},
        input_(words_ * 4),
        results_(words_ * 4 * links) {
    rows_.count = count;
    rows_.inner = problem.layout == Layout::strided ? count : 1;
    for (std::size_t source = 0; source < 2; ++source) {
      std::vector<float> values(words_);
      for (std::size_t i = 0; i < words_; ++i) values[i] = static_cast<float>((i * 7 + source * 5) % 23) / 4;
      sources_[source].upload(values.data(), words_ * 4);
    }
    cuda::check(cuda::driver().MemsetD8(reinterpret_cast<CUdeviceptr>(input_.get()), 0, words_ * 4), "cuMemsetD8");
  }

  // What a kernel makes of each source, all by itself.
  [[nodiscard]] std::array<Bits, 2> expected(const Kernel& kernel) {
    std::array<Bits, 2> bits;
    for (std::size_t source = 0; source < 2; ++source) {
      launch(kernel, sources_[source].get(), source, nullptr);
      bits[source] = result(source);
    }
    return bits;
  }

  // Each link reads what the copy before it brings, which is the other source than that of the last link.
  void enqueue(const Copy& late_copy, const Kernel& kernel, CUstream stream) const {
    for (std::size_t link = 0; link < links; ++link) {
      late_copy.launch(input_.get(), sources_[link % 2].get(), words_, stream);
      launch(kernel, input_.get(), link, stream);
    }
  }

  // Links whose results are not those of their source; the results are forgotten.
  [[nodiscard]] int wrong(const std::array<Bits, 2>& expected) const {
    int count = 0;
    for (std::size_t link = 0; link < links; ++link) count += result(link) != expected[link % 2] ? 1 : 0;
    cuda::check(cuda::driver().MemsetD8(reinterpret_cast<CUdeviceptr>(results_.get()), 0, words_ * 4 * links),
                "cuMemsetD8");
    synchronize();
    return count;
  }

 private:
  void launch(const Kernel& kernel, const void* in, std::size_t link, CUstream stream) const {
    Rows rows = rows_;
    rows.in = in;
    rows.out = static_cast<char*>(results_.get()) + link * words_ * 4;
    kernel.launch(rows, stream);
  }
  [[nodiscard]] Bits result(std::size_t link) const {
    synchronize();
    Bits bits(words_);
    results_.download(bits.data(), words_ * 4, link * words_ * 4);
    return bits;
  }

  std::size_t words_;
  Rows rows_;
  std::array<cuda::DeviceBuffer, 2> sources_;
  cuda::DeviceBuffer input_;
  cuda::DeviceBuffer results_;
};

struct Case {
  std::string what;
  Problem problem;
  std::int64_t count;
  std::string family = {};
};
std::vector<Case> cases(bool clusters) {
  std::vector<Case> all{
      {"parts of a warp", {.cols = 60}, 1000},
      {"a block a row", {.cols = 1000}, 64},
      {"a cluster a row, or what there is without", {.cols = 65536}, 8},
      {"many rows", {.cols = 4097}, 2000},
      {"looped", {.cols = 5000}, 100, "looped"},
      {"safe", {.cols = 5000}, 100, "safe"},
      {"split", {.cols = 1'000'000}, 2, "split"},
      {"split, a block a row", {.cols = 1000}, 50, "split"},
      {"strided", {.cols = 20000, .layout = Layout::strided}, 96, "strided"},
      {"strided, in registers", {.cols = 500, .layout = Layout::strided}, 96, "strided_registers"},
  };
  if (clusters) {
    all.push_back({"strided, staged",
                   {.cols = 500, .in = DType::bf16, .out = DType::bf16, .layout = Layout::strided},
                   96,
                   "strided_staged"});
  }
  if (clusters) all.push_back({"staged", {.cols = 16384}, 40, "staged"});
  return all;
}

bool knows_programmatic_launches() { return cuda::architecture(cuda::current_device()).major >= 9; }

}  // namespace

TEST_CASE("a kernel that does not wait begins early and reads what is not there yet: what the next cases would see") {
  const Gpu gpu;
  if (!knows_programmatic_launches()) return;
  const Copy late_copy("late_copy");
  const Copy rash_copy("rash_copy");
  const cuda::OwnedStream stream = cuda::make_stream();
  cuda::DeviceBuffer buffers(3 * sizeof(std::uint32_t));
  auto* const words = static_cast<std::uint32_t*>(buffers.get());
  int stale = 0;
  constexpr int repeats = 20;
  for (int i = 0; i < repeats; ++i) {
    const std::array<std::uint32_t, 3> before{1, 0, 0};
    buffers.upload(before.data(), sizeof before);
    synchronize();
    late_copy.launch(words + 1, words, 1, stream.get());
    rash_copy.launch(words + 2, words + 1, 1, stream.get());
    synchronize();
    std::array<std::uint32_t, 3> after{};
    buffers.download(after.data(), sizeof after);
    CHECK(after[1] == 1);
    stale += after[2] == 0 ? 1 : 0;
  }
  MESSAGE(stale << " of " << repeats << " began before the copy that they follow had written");
  CHECK(stale > 0);
}

TEST_CASE("every family reads what the kernel before it writes last, and is not overtaken") {
  const Gpu gpu;
  const Copy late_copy("late_copy");
  const cuda::OwnedStream stream = cuda::make_stream();
  for (const Case& c : cases(knows_programmatic_launches())) {
    CAPTURE(c.what);
    Chain chain(c.problem, c.count);
    Engine plain(options_with(false, c.family));
    const auto expected = chain.expected(plain.prepare(c.problem));
    REQUIRE(expected[0] != expected[1]);
    Engine engine(options_with(true, c.family));
    const Kernel kernel = engine.prepare(c.problem);
    constexpr int repeats = 30;
    int wrong = 0;
    for (int i = 0; i < repeats; ++i) {
      chain.enqueue(late_copy, kernel, stream.get());
      wrong += chain.wrong(expected);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("captured into a graph and replayed 1000 times: the same bits") {
  const Gpu gpu;
  const Copy late_copy("late_copy");
  const cuda::OwnedStream stream = cuda::make_stream();
  for (const Case& c : cases(knows_programmatic_launches())) {
    CAPTURE(c.what);
    Chain chain(c.problem, c.count);
    Engine plain(options_with(false, c.family));
    const auto expected = chain.expected(plain.prepare(c.problem));
    Engine engine(options_with(true, c.family));
    const Kernel kernel = engine.prepare(c.problem);
    const cuda::OwnedGraphExec graph =
        cuda::capture(stream.get(), [&] { chain.enqueue(late_copy, kernel, stream.get()); });
    int wrong = 0;
    for (int i = 0; i < 1000; ++i) {
      cuda::check(cuda::driver().GraphLaunch(graph.get(), stream.get()), "cuGraphLaunch");
      if (i % 100 == 99) wrong += chain.wrong(expected);
    }
    CHECK(wrong == 0);
  }
}

// For people to read; clocks and hosts differ too much to assert anything.
TEST_CASE("the time of small launches one after the other") {
  const Gpu gpu;
  constexpr Problem problem{.cols = 1024};
  constexpr std::int64_t count = 64;
  constexpr int launches = 200;
  const cuda::OwnedStream stream = cuda::make_stream();
  const cuda::DeviceBuffer buffer(static_cast<std::size_t>(problem.cols * count) * 4);
  Rows rows;
  rows.in = rows.out = buffer.get();
  rows.count = count;
  const auto begin = cuda::make_event();
  const auto end = cuda::make_event();
  const auto microseconds = [&](const std::function<void()>& enqueue) {
    std::vector<float> times;
    for (int i = 0; i < 21; ++i) {
      cuda::check(cuda::driver().EventRecord(begin.get(), stream.get()), "cuEventRecord");
      enqueue();
      cuda::check(cuda::driver().EventRecord(end.get(), stream.get()), "cuEventRecord");
      synchronize();
      float milliseconds = 0;
      cuda::check(cuda::driver().EventElapsedTime(&milliseconds, begin.get(), end.get()), "cuEventElapsedTime");
      times.push_back(milliseconds * 1000 / launches);
    }
    std::nth_element(times.begin(), times.begin() + 10, times.end());
    return times[10];
  };
  for (const bool programmatic : {false, true}) {
    Engine engine(options_with(programmatic));
    const Kernel kernel = engine.prepare(problem);
    const auto enqueue = [&] {
      for (int i = 0; i < launches; ++i) kernel.launch(rows, stream.get());
    };
    const cuda::OwnedGraphExec graph = cuda::capture(stream.get(), enqueue);
    const float in_stream = microseconds(enqueue);
    const float in_graph =
        microseconds([&] { cuda::check(cuda::driver().GraphLaunch(graph.get(), stream.get()), "cuGraphLaunch"); });
    MESSAGE(std::string(programmatic ? "programmatic" : "plain")
            << ": " << in_stream << " us a launch, " << in_graph << " in a graph");
  }
}
