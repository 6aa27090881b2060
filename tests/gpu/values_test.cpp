// Promise: what the GPU computes is softmax to the documented accuracy, for every kernel that can be
// asked for, also where numbers are special, subnormal, far from 0 or many.
#include <cfloat>
#include <cmath>

#include "gpu/gpu_case.hpp"
#include "plan/variants.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

// The lesson's literal recurrences drift over long rows; their bound here is for the lengths below.
double tolerance_of(const std::string& variant) {
  const bool literal = variant == "v0" || variant == "v1" || variant == "v2" || variant == "v4";
  return literal ? 1e-4 : 0;
}

std::vector<std::string> all_variants() {
  std::vector<std::string> names = plan::variant_names();
  names.emplace_back("");  // the built-in choice
  return names;
}

std::vector<double> softmax_of(Engine& engine, const std::vector<double>& row, DType type, Op op = Op::softmax,
                               float scale = 1) {
  const Problem problem{static_cast<std::int64_t>(row.size()), type, type, op};
  GpuCase test(problem, 1);
  test.rows.scale = scale;
  test.fill([&](std::int64_t, std::int64_t j) { return row[static_cast<std::size_t>(j)]; });
  return test.run(engine.prepare(problem));
}

std::vector<double> linspace(std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i) / static_cast<double>(count - 1));
  return values;
}

}  // namespace

TEST_CASE("one poison or mask at any place of a row, among ordinary rows, in every variant") {
  const Gpu gpu;
  for (const std::string& variant : all_variants()) {
    for (const MaskedRows masked : {MaskedRows::nan, MaskedRows::zero}) {
      Engine engine(gpu_options(variant, masked));
      for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
        for (const Op op : {Op::softmax, Op::log_softmax}) {
          for (const std::int64_t cols : {1, 3, 33, 385, 1025}) {
            const Problem problem{cols, type, type, op};
            GpuCase test(problem, 17);
            test.masked = masked;
            test.fill([&](std::int64_t r, std::int64_t j) {
              switch (r % 9) {
                case 0:
                  return -infinity;
                case 1:
                  return j == cols / 2 ? not_a_number : -infinity;
                case 2:
                  return j == cols - 1 ? not_a_number : 1.0;
                case 3:
                  return j == 0 ? infinity : 0.5;
                case 4:
                  return j == cols - 1 ? 2.0 : -infinity;
                case 5:
                  return j % 3 == 1 ? -infinity : static_cast<double>(j % 7);
                case 6:
                  return j == 0 ? not_a_number : 0.0;
                case 7:
                  return j == cols - 1 ? infinity : -infinity;
                default:
                  return static_cast<double>((r + j) % 5);
              }
            });
            CAPTURE(variant);
            CAPTURE(plan::describe(problem));
            CHECK(test.check(engine.prepare(problem), tolerance_of(variant)) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("few long rows whose parts are apart by a little, by a lot, masked or poisoned") {
  const Gpu gpu;
  for (const MaskedRows masked : {MaskedRows::nan, MaskedRows::zero}) {
    Engine engine(gpu_options("", masked));
    for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      for (const Op op : {Op::softmax, Op::log_softmax}) {
        for (const std::int64_t cols : {8192, 16385, 32000, 50257, 131072}) {
          const Problem problem{cols, type, type, op};
          GpuCase test(problem, 10);
          test.masked = masked;
          test.fill([&](std::int64_t r, std::int64_t j) {
            // How much the row falls from one end to the other, in eighths: sums of f32 bear 17 of it or so.
            const auto falls = [&](double by) {
              return -std::floor(by * 8 * static_cast<double>(j) / static_cast<double>(cols)) / 8;
            };
            switch (r) {
              case 0:
                return falls(7);
              case 1:
                return falls(16);
              case 2:
                return falls(19);
              case 3:
                return falls(100);
              case 4:
                return j == cols / 3 ? 40.0 : static_cast<double>(j % 7);
              case 5:
                return j < cols / 2 ? -infinity : static_cast<double>(j % 5);
              case 6:
                return j == cols - 1 ? not_a_number : 1.0;
              case 7:
                return j == 0 ? infinity : falls(3);
              case 8:
                return -infinity;
              default:
                return j == cols - 1 ? 2.0 : -infinity;
            }
          });
          CAPTURE(plan::describe(problem));
          CHECK(test.check(engine.prepare(problem), 0) == "");
        }
      }
    }
  }
}

TEST_CASE("small rows of extreme numbers have their known results") {
  const Gpu gpu;
  for (const std::string& variant : all_variants()) {
    CAPTURE(variant);
    Engine engine(gpu_options(variant));
    const auto f32 = [&](const std::vector<double>& row) { return softmax_of(engine, row, DType::f32); };
    CHECK(f32({-60000, -60001})[0] == doctest::Approx(0.7310586).epsilon(1e-6));
    CHECK(f32({-60000, -60001})[1] == doctest::Approx(0.2689414).epsilon(1e-6));
    CHECK(f32({0, -100})[0] == 1);
    CHECK(f32({0, -100})[1] == doctest::Approx(3.7835e-44).epsilon(1e-3));
    CHECK(f32({FLT_MAX, -FLT_MAX}) == std::vector<double>{1, 0});
    CHECK(std::isnan(f32({0, infinity})[0]));
    CHECK(std::isnan(f32({0, infinity})[1]));
    CHECK(softmax_of(engine, {1, 1, 1e100}, DType::f64) == std::vector<double>{0, 0, 1});
    for (const double each : softmax_of(engine, std::vector<double>(33, -1000), DType::f32)) {
      CHECK(each == doctest::Approx(1.0 / 33).epsilon(1e-6));
    }
    for (const std::int64_t cols : {1, 2, 31, 33, 1023, 1025}) {
      double sum = 0;
      for (const double each : f32(std::vector<double>(static_cast<std::size_t>(cols), 0.25))) sum += each;
      CHECK(sum == doctest::Approx(1).epsilon(1e-5));
    }
    CHECK(f32({-3}) == std::vector<double>{1});
    for (const double each : softmax_of(engine, std::vector<double>(4096, 1), DType::f16)) REQUIRE(each == 0x1p-12);
    for (const double each : softmax_of(engine, std::vector<double>(512, 1), DType::bf16)) REQUIRE(each == 0x1p-9);
  }
}

TEST_CASE(
    "a scale is rounded into the product before the maximum is subtracted: of any sign, 0, and one that overflows") {
  const Gpu gpu;
  Engine engine(gpu_options());
  std::vector<Problem> problems;
  for (const auto& [in, out] : type_pairs) {
    for (const Op op : {Op::softmax, Op::log_softmax}) {
      // The last ones hold elements of 16 bits as they are.
      for (const std::int64_t cols : {5, 1000, 65543}) problems.push_back({cols, in, out, op});
      for (const std::int64_t cols : {5, 2500}) problems.push_back({cols, in, out, op, Layout::strided});
    }
  }
  warm_up(engine, problems);
  for (const Problem& problem : problems) {
    const std::int64_t inner = problem.layout == Layout::strided ? 66 : 1;
    for (const float scale : {0.3F, -0.7F, 0.0F, -0.0F, 1e30F, 3e38F, -3e38F}) {
      GpuCase test(problem, 3 * inner, inner);
      test.rows.scale = scale;
      test.fill([&](std::int64_t r, std::int64_t j) {
        const double value = static_cast<double>((j * 37 + r * 11) % 64 - 32) / 8;
        return r % 3 == 1 && j == problem.cols / 2 ? std::copysign(infinity, -scale) : value;
      });
      CAPTURE(plan::describe(problem));
      CAPTURE(scale);
      CHECK(test.check(engine.prepare(problem)) == "");
    }
  }
}

TEST_CASE("a row of 131072 equal f16 numbers becomes a subnormal that is not flushed") {
  const Gpu gpu;
  for (const char* variant : {"", "generic"}) {
    Engine engine(gpu_options(variant));
    for (const double each : softmax_of(engine, std::vector<double>(131072, 1), DType::f16)) REQUIRE(each == 0x1p-17);
  }
}

TEST_CASE("rows far from 0 give what the shifted row gives") {
  const Gpu gpu;
  for (const char* variant : {"", "generic", "safe3"}) {
    Engine engine(gpu_options(variant));
    for (const std::int64_t cols : {33, 1000, 4096, 20000, 131072}) {
      for (const double offset : {1e4, 1e5, 1e6}) {
        GpuCase test({.cols = cols}, 3);
        // Steps of 1/8 stay exact beside an offset of 1e6.
        test.fill(
            [&](std::int64_t r, std::int64_t j) { return offset + static_cast<double>((j * 37 + r * 11) % 160) / 8; });
        CAPTURE(variant);
        CAPTURE(cols);
        CAPTURE(offset);
        CHECK(test.check(engine.prepare({.cols = cols})) == "");
      }
    }
  }
}

TEST_CASE("rows whose trip count is known only at the launch have the same values") {
  const Gpu gpu;
  Options options = gpu_options();
  options.variant.family = "counted";
  options.variant.threads = 256;
  Engine engine(options);
  for (const auto& [in, out] : type_pairs) {
    for (const std::int64_t cols : {1, 333, 1024, 4096}) {
      for (const std::int64_t offset : {0, 1}) {
        const Problem problem{.cols = cols, .in = in, .out = out};
        GpuCase test(problem, 5);
        test.in_offset = test.out_offset = offset;
        test.fill([&](std::int64_t r, std::int64_t j) { return static_cast<double>((j * 37 + r * 11) % 160) / 8; });
        CAPTURE(plan::describe(problem));
        CAPTURE(offset);
        CHECK(test.check(engine.prepare(problem)) == "");
      }
    }
  }
}

TEST_CASE("long sums do not drift") {
  const Gpu gpu;
  for (const char* variant : {"", "generic", "safe3"}) {
    Engine engine(gpu_options(variant));
    for (const std::int64_t cols : {4096, 131072, 1 << 25}) {
      for (const Op op : {Op::softmax, Op::log_softmax}) {
        const Problem problem{.cols = cols, .op = op};
        const Kernel kernel = engine.prepare(problem);
        CAPTURE(variant);
        CAPTURE(plan::describe(problem));
        GpuCase test(problem, 1);
        test.fill([](std::int64_t, std::int64_t) { return 0.7; });
        CHECK(test.check(kernel) == "");
        if (cols > 131072) continue;
        const std::vector<double> ascending = linspace(cols);
        test.fill([&](std::int64_t, std::int64_t j) { return ascending[static_cast<std::size_t>(j)]; });
        CHECK(test.check(kernel) == "");
        test.fill([&](std::int64_t, std::int64_t j) { return 3 * ascending[static_cast<std::size_t>(cols - 1 - j)]; });
        CHECK(test.check(kernel) == "");
      }
    }
  }
}

TEST_CASE("rows of every length from 1 to 2100 sum to 1 in every type") {
  const Gpu gpu;
  Engine engine(gpu_options("generic"));
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (std::int64_t cols = 1; cols <= 2100; ++cols) {
      const Problem problem{cols, type, type};
      GpuCase test(problem, 2);
      test.fill_random(static_cast<unsigned>(cols));
      const std::vector<double> got = test.run(engine.prepare(problem));
      CAPTURE(plan::describe(problem));
      REQUIRE(check_close(problem, got, test.expected()) == "");
      double sum = 0;
      for (std::int64_t j = 0; j < cols; ++j) sum += got[static_cast<std::size_t>(j)];
      const double unit = type == DType::f64 ? 1e-13 : type == DType::f32 ? 1e-6 : type == DType::f16 ? 1e-3 : 1e-2;
      REQUIRE(std::abs(sum - 1) <= unit);
    }
  }
}
