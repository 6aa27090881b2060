// Promise: any row length, number of rows, stride and alignment is served, in place too, and nothing
// outside the rows is touched.
#include <algorithm>
#include <array>
#include <set>

#include "gpu/gpu_case.hpp"
#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/variants.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

// Lengths at which the built-in choice changes its family, threads or elements, and their neighbours.
std::vector<std::int64_t> thresholds(DType in, DType out) {
  std::set<std::int64_t> lengths;
  std::string last;
  for (std::int64_t cols = 16; cols <= 140000; cols += 16 + cols / 100 / 16 * 16) {
    plan::Specialization s = plan::choose({cols, in, out}, Arch{9, 0, 0}).back();
    s.cols = 0;
    const std::string name = plan::name_expression(s);
    if (name != last) lengths.insert({cols - 1, cols, cols + 1, cols - 16});
    last = name;
  }
  lengths.erase(0);
  return {lengths.begin(), lengths.end()};
}

}  // namespace

TEST_CASE("every length from 1 to 300, and every length where the choice changes") {
  const Gpu gpu;
  Engine engine(gpu_options());
  for (const auto& [in, out] : type_pairs) {
    std::vector<std::int64_t> lengths = thresholds(in, out);
    if (in == out) {
      for (std::int64_t cols = 1; cols <= 300; cols += in == DType::f32 ? 1 : 7) lengths.push_back(cols);
    } else if (lengths.size() > 40) {
      lengths.resize(40);
    }
    std::vector<Problem> problems;
    for (const std::int64_t cols : lengths) problems.push_back({cols, in, out});
    warm_up(engine, problems);
    for (const Problem& problem : problems) {
      GpuCase test(problem, problem.cols > 5000 ? 2 : 9);
      test.fill_random(static_cast<unsigned>(problem.cols));
      CAPTURE(plan::describe(problem));
      CHECK(test.check(engine.prepare(problem)) == "");
    }
  }
}

TEST_CASE("rows of common long lengths, and rows beyond a block's shared memory") {
  const Gpu gpu;
  Engine engine(gpu_options());
  std::vector<Problem> problems;
  for (const auto& [in, out] : type_pairs) {
    for (const std::int64_t cols : {46336, 64000, 102400, 151936, 151935, 262144, 1000003, 3000017})
      problems.push_back({cols, in, out});
  }
  warm_up(engine, problems);
  for (const Problem& problem : problems) {
    GpuCase test(problem, 2);
    test.fill_random(static_cast<unsigned>(problem.cols));
    CAPTURE(plan::describe(problem));
    CHECK(test.check(engine.prepare(problem)) == "");
  }
}

TEST_CASE("all pairs of alignment are served, with the same bits where it is to be deterministic") {
  const Gpu gpu;
  for (const bool deterministic : {true, false}) {
    Options options = gpu_options();
    options.deterministic = deterministic;
    Engine engine(options);
    constexpr std::array<std::int64_t, 5> lengths{5, 385, 1000, 4096, 16384};
    std::vector<Problem> problems;
    for (const auto& [in, out] : type_pairs) {
      for (const std::int64_t cols : lengths) problems.push_back({cols, in, out});
    }
    warm_up(engine, problems);
    for (const auto& [in, out] : type_pairs) {
      for (const std::int64_t cols : lengths) {
        const Problem problem{cols, in, out};
        const Kernel kernel = engine.prepare(problem);
        const int phases = 16 / std::min(size_of(in), size_of(out));
        std::vector<double> aligned;
        for (int in_phase = 0; in_phase < phases; ++in_phase) {
          for (int out_phase = 0; out_phase < phases; out_phase += in_phase < 2 ? 1 : 5) {
            GpuCase test(problem, 3);
            test.in_offset = in_phase;
            test.out_offset = out_phase;
            test.fill_random(7);
            const std::vector<double> got = test.run(kernel);
            CAPTURE(deterministic);
            CAPTURE(plan::describe(problem));
            CAPTURE(in_phase);
            CAPTURE(out_phase);
            REQUIRE(check_close(problem, got, test.expected()) == "");
            if (aligned.empty()) aligned = got;
            if (deterministic) REQUIRE(got == aligned);
          }
        }
      }
    }
  }
}

TEST_CASE("strides leave the gaps alone, in every variant") {
  const Gpu gpu;
  std::vector<std::string> variants = plan::variant_names();
  variants.emplace_back("");
  for (const std::string& variant : variants) {
    Engine engine(gpu_options(variant));
    for (const std::int64_t cols : {5, 64, 333}) {
      for (const std::int64_t in_gap : {0, 3, 8}) {
        for (const std::int64_t out_gap : {0, 1, 8}) {
          const Problem problem{.cols = cols};
          GpuCase test(problem, 40);
          test.rows.in_stride = cols + in_gap;
          test.rows.out_stride = cols + out_gap;
          test.fill_random(11);
          CAPTURE(variant);
          CAPTURE(cols);
          CAPTURE(in_gap);
          CAPTURE(out_gap);
          CHECK(test.check(engine.prepare(problem), 1e-4) == "");
        }
      }
    }
  }
}

TEST_CASE("in place gives the bits of out of place") {
  const Gpu gpu;
  std::vector<std::string> variants = plan::variant_names();
  variants.emplace_back("");
  for (const std::string& variant : variants) {
    Engine engine(gpu_options(variant));
    for (const DType type : {DType::f16, DType::f32, DType::f64}) {
      for (const std::int64_t cols : {7, 1000, 8192}) {
        const Problem problem{cols, type, type};
        const Kernel kernel = engine.prepare(problem);
        GpuCase test(problem, 50);
        test.fill_random(3);
        const std::vector<double> apart = test.run(kernel);
        test.in_place = true;
        CAPTURE(variant);
        CAPTURE(plan::describe(problem));
        CHECK(test.run(kernel) == apart);
      }
    }
  }
}

TEST_CASE("softmax along a dimension that is not the last") {
  const Gpu gpu;
  std::vector<Problem> problems;
  for (const auto& [in, out] : type_pairs) {
    for (const Op op : {Op::softmax, Op::log_softmax}) {
      // One warp to all of a block's; several blocks; more than a cluster of blocks holds.
      for (const std::int64_t cols : {1, 2, 63, 64, 300, 2500, 20000})
        problems.push_back({cols, in, out, op, Layout::strided});
    }
  }
  Variant wide;
  wide.vector = 2;
  std::vector<Options> all_options{gpu_options(), gpu_options("generic"), gpu_options()};
  all_options.back().variant = wide;
  for (const Options& options : all_options) {
    Engine engine(options);
    std::vector<Problem> served = problems;
    if (options.variant.vector) std::erase_if(served, [](const Problem& p) { return p.cols < 63 || p.cols > 300; });
    warm_up(engine, served);
    for (const Problem& problem : served) {
      for (const std::int64_t inner : {1, 5, 32, 100}) {
        if (problem.cols > 300 && inner == 100) continue;
        GpuCase test(problem, 3 * inner, inner);
        test.rows.in_stride = problem.cols * inner + (inner == 32 ? 0 : 5);
        test.rows.scale = inner == 5 ? -0.7F : 0.5F;
        test.fill_random(static_cast<unsigned>(problem.cols * inner));
        CAPTURE(options.variant.name);
        CAPTURE(options.variant.vector.value_or(0));
        CAPTURE(plan::describe(problem));
        CAPTURE(inner);
        CHECK(test.check(engine.prepare(problem)) == "");
      }
    }
  }
}

TEST_CASE("rows side by side that wait in shared memory, in whole pieces or not") {
  const Gpu gpu;
  if (!plan::has_large_clusters(cuda::architecture(cuda::current_device()))) {
    MESSAGE("skipped: the tiles take more shared memory than a block of this device has");
    return;
  }
  struct Tile {
    std::int64_t cols;
    int warps;
    int cluster;
    int pieces;
  };
  constexpr Tile tiles[] = {{300, 4, 1, 6},    {768, 8, 1, 8},    {1021, 8, 1, 12}, {1500, 16, 1, 8},
                            {2048, 16, 1, 12}, {2048, 32, 1, 6},  {2048, 8, 2, 12}, {3001, 16, 2, 8},
                            {4000, 16, 2, 12}, {4096, 16, 2, 12}, {4096, 32, 2, 6}, {5000, 16, 4, 6}};
  for (const Tile& tile : tiles) {
    Options options = gpu_options();
    options.variant.family = "strided_staged";
    options.variant.threads = tile.warps;
    options.variant.cluster = tile.cluster;
    options.variant.vector = 2;
    options.variant.pieces = tile.pieces;
    Engine engine(options);
    std::vector<Problem> problems;
    for (const auto& [in, out] : type_pairs) {
      if (size_of(in) != 2) continue;
      problems.push_back({tile.cols, in, out, Op::softmax, Layout::strided});
      problems.push_back({tile.cols, in, out, Op::log_softmax, Layout::strided});
    }
    warm_up(engine, problems);
    for (const Problem& problem : problems) {
      for (const std::int64_t inner : {8, 72, 200}) {
        GpuCase test(problem, (inner == 8 ? 9 : 2) * inner, inner);
        test.rows.in_stride = problem.cols * inner + (inner == 72 ? 8 : 0);
        test.rows.scale = inner == 8 ? -0.7F : inner == 72 ? 0.5F : 1.0F;
        test.fill_random(static_cast<unsigned>(problem.cols * inner));
        CAPTURE(plan::describe(problem));
        CAPTURE(tile.warps);
        CAPTURE(inner);
        CHECK(test.check(engine.prepare(problem)) == "");
      }
    }
  }
}

TEST_CASE("as many rows side by side as fill the device, and others") {
  const Gpu gpu;
  Engine engine(gpu_options());
  for (const auto& [cols, rows] : {std::pair{4096, 4096}, {4096, 2600}, {2048, 8200}, {1024, 16384}, {1024, 13992}}) {
    const Problem problem{cols, DType::bf16, DType::bf16, Op::softmax, Layout::strided};
    GpuCase test(problem, rows, rows);
    test.fill_random(static_cast<unsigned>(rows));
    CAPTURE(cols);
    CAPTURE(rows);
    CHECK(test.check(engine.prepare(problem)) == "");
  }
}

TEST_CASE("as many long rows, or tiles, as begin one after another, and more than the device has room for") {
  const Gpu gpu;
  Engine engine(gpu_options());
  std::vector<Problem> problems;
  for (const DType type : {DType::f32, DType::bf16, DType::f64}) {
    for (const std::int64_t cols : {50257, 65536, 131072}) problems.push_back({cols, type, type});
  }
  const Problem strided{.cols = 4096, .layout = Layout::strided};
  problems.push_back(strided);
  warm_up(engine, problems);
  for (const Problem& problem : problems) {
    for (const std::int64_t count : {16, 40, 90}) {
      const std::int64_t rows = problem.layout == Layout::strided ? 32 * count : count;
      GpuCase test(problem, rows, problem.layout == Layout::strided ? rows : 1);
      test.fill_random(static_cast<unsigned>(rows));
      CAPTURE(plan::describe(problem));
      CAPTURE(rows);
      CHECK(test.check(engine.prepare(problem)) == "");
    }
  }
}

TEST_CASE("any number of rows, around every limit of a grid") {
  const Gpu gpu;
  std::vector<std::string> variants = plan::variant_names();
  variants.emplace_back("");
  for (const std::string& variant : variants) {
    Engine engine(gpu_options(variant));
    for (const std::int64_t rows : {65535, 65536, 65537, 131071}) {
      const Problem problem{.cols = 4};
      GpuCase test(problem, rows);
      test.fill_random(5);
      CAPTURE(variant);
      CAPTURE(rows);
      CHECK(test.check(engine.prepare(problem)) == "");
    }
  }
}

TEST_CASE("2.2 billion rows of one column are all 1, also where a block has one row and a grid ends before") {
  const Gpu gpu;
  constexpr std::int64_t count = 2'200'000'000;
  constexpr std::size_t bytes = 2 * static_cast<std::size_t>(count);
  const Problem problem{1, DType::f16, DType::f16};
  const char* variant = "";
  SUBCASE("many rows a block") {}
  SUBCASE("one row a block") { variant = "v1"; }
  Engine engine(gpu_options(variant));
  cuda::DeviceBuffer data(bytes);
  cuda::check(cuda::driver().MemsetD8(reinterpret_cast<CUdeviceptr>(data.get()), 0x11, bytes), "cuMemsetD8");
  Rows rows;
  rows.in = rows.out = data.get();
  rows.count = count;
  engine.prepare(problem).launch(rows);
  std::vector<std::uint16_t> piece(std::size_t{1} << 24);
  for (std::size_t at = 0; at < count; at += piece.size()) {
    const std::size_t length = std::min(piece.size(), static_cast<std::size_t>(count) - at);
    data.download(piece.data(), 2 * length, 2 * at);
    const auto is_one = [](std::uint16_t bits) { return bits == 0x3c00; };
    REQUIRE(std::all_of(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(length), is_one));
  }
}

TEST_CASE("rows beyond 2^31 and 2^32 elements equal the same rows computed alone") {
  const Gpu gpu;
  struct Shape {
    std::int64_t rows;
    std::int64_t cols;
  };
  for (const Shape shape : {Shape{2'097'154, 1024}, Shape{85'632, 50'259}}) {
    const Problem problem{shape.cols, DType::f16, DType::f16};
    const auto row_bytes = static_cast<std::size_t>(2 * shape.cols);
    const std::size_t bytes = static_cast<std::size_t>(shape.rows) * row_bytes;
    constexpr std::int64_t last = 5;
    Options options = gpu_options();
    options.deterministic = true;  // few rows would take another kernel
    Engine engine(options);
    const Kernel kernel = engine.prepare(problem);

    GpuCase alone(problem, last);
    alone.fill_random(42);
    std::mt19937 random(42);
    std::normal_distribution<double> normal(0, 3);
    std::vector<char> inputs(last * row_bytes);
    for (std::int64_t i = 0; i < last * shape.cols; ++i) write(DType::f16, inputs.data(), i, normal(random));

    cuda::DeviceBuffer in(bytes);
    cuda::DeviceBuffer out(bytes);
    cuda::check(cuda::driver().MemsetD8(reinterpret_cast<CUdeviceptr>(in.get()), 0x11, bytes), "cuMemsetD8");
    const std::size_t at = bytes - inputs.size();
    cuda::check(cuda::driver().MemcpyHtoD(reinterpret_cast<CUdeviceptr>(in.get()) + at, inputs.data(), inputs.size()),
                "cuMemcpyHtoD");
    Rows rows;
    rows.in = in.get();
    rows.out = out.get();
    rows.count = shape.rows;
    kernel.launch(rows);
    std::vector<char> results(inputs.size());
    out.download(results.data(), results.size(), at);
    std::vector<double> got;
    for (std::int64_t i = 0; i < last * shape.cols; ++i) got.push_back(read(DType::f16, results.data(), i));
    CAPTURE(plan::describe(problem));
    CHECK(check_close(problem, got, alone.expected()) == "");
    CHECK(got == alone.run(kernel));
  }
}
