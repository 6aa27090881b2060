// One host softmax with buffers of exactly the size that its rows span, so that a sanitizer sees any
// byte too many, and a pattern in the elements that no row owns.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "host/softmax.hpp"
#include "host/variants.hpp"
#include "reference.hpp"

namespace jitsoftmax::testing {

struct TypePair {
  DType in;
  DType out;
};

constexpr TypePair type_pairs[] = {{DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::f32, DType::f32},
                                   {DType::f64, DType::f64}, {DType::f16, DType::f32},   {DType::bf16, DType::f32},
                                   {DType::f32, DType::f16}, {DType::f32, DType::bf16}};
constexpr Op ops[] = {Op::softmax, Op::log_softmax};

class HostCase {
 public:
  // Strides of 0 are packed.
  HostCase(const Problem& problem, std::int64_t count, std::int64_t inner = 1, std::int64_t in_stride = 0,
           std::int64_t out_stride = 0)
      : problem_(problem) {
    rows_.count = count;
    rows_.inner = inner;
    rows_.in_stride = in_stride != 0 ? in_stride : problem.cols * inner;
    rows_.out_stride = out_stride != 0 ? out_stride : problem.cols * inner;
    in_elements_ = extent(problem, rows_.in_stride, inner, count);
    out_elements_ = extent(problem, rows_.out_stride, inner, count);
    in_ = buffer(in_elements_ * size_of(problem.in));
    out_ = buffer(out_elements_ * size_of(problem.out));
    rows_.in = in_.get();
    rows_.out = out_.get();
  }

  void set(std::int64_t row, std::int64_t j, double x) {
    write(problem_.in, in_.get(), index_of(problem_, rows_.in_stride, rows_.inner, row, j), x);
  }
  template <class Value>  // of (row, j)
  void fill(Value value) {
    for (std::int64_t r = 0; r < rows_.count; ++r) {
      for (std::int64_t j = 0; j < problem_.cols; ++j) set(r, j, value(r, j));
    }
  }
  void fill_normal(unsigned seed, double deviation = 3) {
    std::mt19937 engine(seed);
    std::normal_distribution<double> normal(0, deviation);
    fill([&](std::int64_t, std::int64_t) { return normal(engine); });
  }

  // From here on the output is the input.
  void make_in_place() { rows_.out = in_.get(); }

  std::vector<double> run(int threads = 1, const host::Kernels* kernels = nullptr) {
    if (rows_.out == out_.get()) std::memset(out_.get(), pattern, bytes());
    host::softmax(problem_, rows_, masked, threads, kernels != nullptr ? *kernels : *host::usable_kernels().back());
    return outputs(problem_, rows_);
  }

  // Empty if the output is right and nothing else was written.
  std::string check(int threads = 1, const host::Kernels* kernels = nullptr) {
    const std::vector<double> reference = reference_softmax(problem_, rows_, masked);
    const std::string difference = check_close(problem_, run(threads, kernels), reference);
    return difference.empty() && !padding_untouched() ? "padding was written" : difference;
  }

  [[nodiscard]] bool padding_untouched() const {
    std::vector<bool> owned(static_cast<std::size_t>(out_elements_));
    for (std::int64_t r = 0; r < rows_.count; ++r) {
      for (std::int64_t j = 0; j < problem_.cols; ++j) {
        owned[static_cast<std::size_t>(index_of(problem_, rows_.out_stride, rows_.inner, r, j))] = true;
      }
    }
    const auto size = static_cast<std::size_t>(size_of(problem_.out));
    for (std::size_t i = 0; i < bytes(); ++i) {
      if (!owned[i / size] && out_.get()[i] != static_cast<char>(pattern)) return false;
    }
    return true;
  }

  [[nodiscard]] std::string output_bits() const { return {static_cast<const char*>(rows_.out), bytes()}; }
  [[nodiscard]] Rows& rows() { return rows_; }

  MaskedRows masked = MaskedRows::nan;

 private:
  static constexpr int pattern = 0xa5;

  static std::unique_ptr<char[]> buffer(std::int64_t bytes) {
    return std::make_unique<char[]>(static_cast<std::size_t>(bytes));
  }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(out_elements_) * static_cast<std::size_t>(size_of(problem_.out));
  }

  Problem problem_;
  Rows rows_;
  std::int64_t in_elements_;
  std::int64_t out_elements_;
  std::unique_ptr<char[]> in_;
  std::unique_ptr<char[]> out_;
};

[[nodiscard]] inline Problem problem_of(std::int64_t cols, TypePair types, Op op = Op::softmax,
                                        Layout layout = Layout::contiguous) {
  return {cols, types.in, types.out, op, layout};
}

}  // namespace jitsoftmax::testing
