// A row's bits depend on the row alone: not on threads, nor on the rows around it, nor, where there
// is a fused multiply-add, on the CPU.
#include <doctest/doctest.h>

#include <atomic>

#include "host/parallel.hpp"
#include "host_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

TEST_CASE("the same bits on any number of threads") {
  struct Shape {
    std::int64_t count;
    std::int64_t cols;
    std::int64_t inner;
  };
  // One long row, few, many; short ones; and the other layout with and without chunks.
  constexpr Shape shapes[] = {{1, 1000003, 1}, {5, 80000, 1},   {60, 70001, 1}, {3000, 129, 1},
                              {100000, 7, 1},  {40, 20000, 40}, {2000, 300, 40}};
  for (const TypePair types : {type_pairs[0], type_pairs[2], type_pairs[3]}) {
    for (const Op op : ops) {
      for (const Shape shape : shapes) {
        const Layout layout = shape.inner > 1 ? Layout::strided : Layout::contiguous;
        HostCase test(problem_of(shape.cols, types, op, layout), shape.count, shape.inner);
        test.fill(
            [](std::int64_t r, std::int64_t j) { return static_cast<double>((r * 7919 + j * 104729) % 4099) / 512; });
        const Problem problem = problem_of(shape.cols, types, op, layout);
        host::softmax(problem, test.rows(), MaskedRows::nan, 1);
        const std::string alone = test.output_bits();
        for (const int threads : {2, 3, 8}) {
          host::softmax(problem, test.rows(), MaskedRows::nan, threads);
          CHECK_MESSAGE(test.output_bits() == alone, "cols " << shape.cols << " threads " << threads);
        }
      }
    }
  }
}

TEST_CASE("the same bits whatever rows there are besides") {
  for (const std::int64_t cols : {7, 27, 28, 100, 1000, 70000}) {
    const Problem problem = problem_of(cols, {DType::f32, DType::f32});
    HostCase all(problem, 70);
    all.fill_normal(11);
    const std::vector<double> got = all.run(2);
    for (const std::int64_t row : {0, 33, 69}) {
      Rows one = all.rows();
      std::vector<float> out(static_cast<std::size_t>(cols));
      one.in = static_cast<const float*>(one.in) + row * cols;
      one.out = out.data();
      one.count = 1;
      host::softmax(problem, one, MaskedRows::nan, 1);
      CHECK(std::vector<double>(out.begin(), out.end()) ==
            std::vector<double>(got.begin() + row * cols, got.begin() + (row + 1) * cols));
    }
  }
}

TEST_CASE("the same bits with AVX2 and AVX-512") {
  const auto& variants = host::usable_kernels();
  for (std::size_t v = 2; v < variants.size(); ++v) {
    for (const TypePair types : type_pairs) {
      for (const Op op : ops) {
        for (const std::int64_t cols : {5, 100, 1001, 70001}) {
          HostCase test(problem_of(cols, types, op), 1);
          test.fill_normal(12, 20);
          test.run(1, variants[1]);
          const std::string first = test.output_bits();
          test.run(1, variants[v]);
          CHECK(test.output_bits() == first);
        }
      }
    }
  }
}

TEST_CASE("parallel calls every task once, and tells its workers apart") {
  for (const int workers : {1, 2, 5}) {
    for (const std::int64_t tasks : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(tasks));
      std::vector<std::atomic<int>> inside(static_cast<std::size_t>(workers));
      std::atomic<bool> shared = false;
      host::parallel(tasks, workers, [&](std::int64_t task, int worker) {
        if (inside[static_cast<std::size_t>(worker)]++ != 0) shared = true;
        ++calls[static_cast<std::size_t>(task)];
        --inside[static_cast<std::size_t>(worker)];
      });
      for (const auto& count : calls) CHECK(count == 1);
      CHECK_FALSE(shared);
    }
  }
  CHECK(host::available_cores() >= 1);
}
