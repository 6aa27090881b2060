// The CPU softmax is right for every type, operation, length and layout, and touches nothing else.
#include <doctest/doctest.h>

#include "host/softmax.hpp"
#include "host_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

// Runs `body(types, op, kernels, seed)` for all of them; a failure names the seed and the types.
template <class Body>
void for_all(unsigned seed, Body body) {
  for (const TypePair types : type_pairs) {
    for (const Op op : ops) {
      int variant = 0;
      for (const host::Kernels* kernels : host::usable_kernels()) {
        ++seed;
        INFO("in " << int(types.in) << " out " << int(types.out) << " op " << int(op) << " variant " << variant++
                   << " seed " << seed);
        body(types, op, kernels, seed);
      }
    }
  }
}

constexpr TypePair f32 = {DType::f32, DType::f32};
constexpr TypePair f64 = {DType::f64, DType::f64};

}  // namespace

TEST_CASE("every length up to 300") {
  for_all(1000, [](TypePair types, Op op, const host::Kernels* kernels, unsigned seed) {
    for (std::int64_t cols = 1; cols <= 300; ++cols) {
      HostCase test(problem_of(cols, types, op), 2);
      test.fill_normal(seed + static_cast<unsigned>(cols) * 100);
      const std::string difference = test.check(1, kernels);
      CHECK_MESSAGE(difference.empty(), "cols " << cols << ": " << difference);
    }
  });
}

TEST_CASE("lengths around the limits of a row in scratch and of chunks") {
  for_all(2000, [](TypePair types, Op op, const host::Kernels* kernels, unsigned seed) {
    const std::int64_t whole = types.in == DType::f64 ? 32768 : 65536;
    const std::int64_t chunk = whole / 8;
    for (const std::int64_t cols : {chunk - 1, whole, whole + 1, whole + chunk - 1, whole + chunk + 17}) {
      HostCase test(problem_of(cols, types, op), 1);
      test.fill_normal(seed);
      const std::string difference = test.check(1, kernels);
      CHECK_MESSAGE(difference.empty(), "cols " << cols << ": " << difference);
    }
  });
}

TEST_CASE("softmax along a dimension that is not the last") {
  for_all(3000, [](TypePair types, Op op, const host::Kernels* kernels, unsigned seed) {
    for (const std::int64_t cols : {1, 2, 7, 8, 9, 40}) {
      for (const std::int64_t inner : {1, 2, 15, 16, 17, 33, 64, 130}) {
        HostCase test(problem_of(cols, types, op, Layout::strided), 3 * inner, inner);
        test.fill_normal(seed);
        const std::string difference = test.check(1, kernels);
        CHECK_MESSAGE(difference.empty(), "cols " << cols << " inner " << inner << ": " << difference);
      }
    }
  });
}

TEST_CASE("long rows along a dimension that is not the last") {
  for_all(4000, [](TypePair types, Op op, const host::Kernels* kernels, unsigned seed) {
    for (const std::int64_t cols : {511, 513, 1024, 1025, 2100}) {
      for (const std::int64_t inner : {3, 20}) {
        HostCase test(problem_of(cols, types, op, Layout::strided), inner, inner);
        test.fill_normal(seed);
        const std::string difference = test.check(1, kernels);
        CHECK_MESSAGE(difference.empty(), "cols " << cols << " inner " << inner << ": " << difference);
      }
    }
  });
}

TEST_CASE("strides larger than a row, different ones for input and output, leave the gaps alone") {
  for_all(5000, [](TypePair types, Op op, const host::Kernels* kernels, unsigned seed) {
    for (const std::int64_t inner : {1, 5, 32}) {
      for (const std::int64_t cols : {5, 31, 100, 385}) {
        const std::int64_t packed = cols * inner;
        HostCase test(problem_of(cols, types, op, inner > 1 ? Layout::strided : Layout::contiguous), 7 * inner, inner,
                      packed + 3, packed + 8);
        test.fill_normal(seed);
        const std::string difference = test.check(1, kernels);
        CHECK_MESSAGE(difference.empty(), "cols " << cols << " inner " << inner << ": " << difference);
      }
    }
  });
}

TEST_CASE("rows that end in the middle of a slab") {
  for (const std::int64_t inner : {5, 20, 100}) {
    for (const std::int64_t count : {inner - 2, inner + 3, 2 * inner + inner / 2}) {
      HostCase test(problem_of(9, f32, Op::softmax, Layout::strided), count, inner);
      test.fill_normal(5500);
      CHECK(test.check() == "");
    }
  }
}

TEST_CASE("many rows on several threads") {
  for (const TypePair types : type_pairs) {
    for (const std::int64_t inner : {1, 24}) {
      HostCase test(problem_of(300, types, Op::softmax, inner > 1 ? Layout::strided : Layout::contiguous), 1200, inner);
      test.fill_normal(6000);
      const std::string difference = test.check(3);
      CHECK_MESSAGE(difference.empty(), "in " << int(types.in) << " inner " << inner << ": " << difference);
    }
  }
}

TEST_CASE("in place gives the same bits") {
  for (const TypePair types : {TypePair{DType::f16, DType::f16}, TypePair{DType::bf16, DType::bf16}, f32, f64}) {
    for (const std::int64_t inner : {1, 3, 40}) {
      for (const std::int64_t cols :
           {std::int64_t{1}, std::int64_t{19}, std::int64_t{33}, std::int64_t{1500}, 70000 / inner}) {
        const Layout layout = inner > 1 ? Layout::strided : Layout::contiguous;
        HostCase test(problem_of(cols, types, Op::softmax, layout), 2 * inner, inner);
        test.fill_normal(7000);
        test.run();
        const std::string apart = test.output_bits();
        test.make_in_place();
        test.run();
        CHECK(test.output_bits() == apart);
      }
    }
  }
}

TEST_CASE("outputs that go past the caches, at every alignment") {
  // 33 MB, so that they are streamed; checked in part, for time.
  const Problem problem = problem_of(16411, f32);
  HostCase test(problem, 520);
  test.fill([](std::int64_t r, std::int64_t j) { return static_cast<double>((r * 31 + j * 17) % 97) / 16; });
  const std::vector<double> got = test.run(2);
  for (const std::int64_t row : {0, 1, 2, 3, 17, 519}) {
    Rows one = test.rows();
    one.in = static_cast<const float*>(one.in) + row * problem.cols;
    one.count = 1;
    const auto begin = got.begin() + row * problem.cols;
    CHECK(check_close(problem, {begin, begin + problem.cols}, reference_softmax(problem, one)) == "");
  }
}

TEST_CASE("scale is multiplied in and rounded before the maximum is subtracted") {
  for (const float scale : {0.125F, -1.5F, 0.3F, 0.0F, 1e30F, 3e38F}) {
    for (const std::int64_t cols : {7, 100}) {
      for (const TypePair types : type_pairs) {
        HostCase test(problem_of(cols, types), 2);
        test.rows().scale = scale;
        test.fill_normal(8000, 30);
        const std::string difference = test.check();
        CHECK_MESSAGE(difference.empty(), "scale " << scale << " in " << int(types.in) << ": " << difference);
      }
    }
  }
}

TEST_CASE("offsets and ascending values lose no accuracy") {
  for (const double offset : {0.0, 1e4, 1e5, 1e6}) {
    for (const std::int64_t cols : {100, 4096, 131072}) {
      HostCase test(problem_of(cols, f32), 1);
      test.fill([&](std::int64_t, std::int64_t j) { return offset + static_cast<double>(j % 256) / 16; });
      CHECK(test.check() == "");
      test.fill([&](std::int64_t, std::int64_t j) { return static_cast<double>(j) / static_cast<double>(cols - 1); });
      CHECK(test.check() == "");
    }
  }
}

TEST_CASE("rows sum to 1 at every length up to 2100") {
  for (const TypePair types : {f32, f64, TypePair{DType::f16, DType::f32}, TypePair{DType::bf16, DType::f32}}) {
    const double tolerance = types.out == DType::f64 ? 1e-13 : 1e-6;
    for (std::int64_t cols = 1; cols <= 2100; ++cols) {
      HostCase test(problem_of(cols, types), 1);
      test.fill_normal(9000 + static_cast<unsigned>(cols));
      double sum = 0;
      for (const double p : test.run()) sum += p;
      CHECK_MESSAGE(std::abs(sum - 1) <= tolerance,
                    "seed " << 9000 + cols << " cols " << cols << " sum - 1 " << sum - 1);
    }
  }
}

TEST_CASE("rows of 2^25 elements keep their accuracy") {
  const std::int64_t cols = std::int64_t{1} << 25;
  std::vector<float> in(static_cast<std::size_t>(cols), 0.7F);
  std::vector<float> out(in.size());
  const Problem problem = problem_of(cols, f32);
  const Rows rows = {out.data(), in.data(), 1, cols, cols, 1, 1};
  host::softmax(problem, rows, MaskedRows::nan);
  CHECK(std::all_of(out.begin(), out.end(), [](float p) { return p == 0x1p-25F; }));

  double sum = 0;
  for (std::size_t j = 0; j < in.size(); ++j) {
    in[j] = static_cast<float>(j) / static_cast<float>(cols - 1);
    sum += std::exp(static_cast<double>(in[j]) - 1);
  }
  host::softmax(problem, rows, MaskedRows::nan);
  double total = 0;
  double worst = 0;
  for (std::size_t j = 0; j < in.size(); ++j) {
    const double reference = std::exp(static_cast<double>(in[j]) - 1) / sum;
    worst = std::max(worst, std::abs(static_cast<double>(out[j]) / reference - 1));
    total += static_cast<double>(out[j]);
  }
  CHECK(worst <= 1e-5);
  CHECK(std::abs(total - 1) <= 1e-6);
}
