// One launch on the GPU beside the reference: buffers of exactly the right size between guard bytes,
// filled by the test, checked whole.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <jitsoftmax/jitsoftmax.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/memory.hpp"
#include "reference.hpp"

namespace jitsoftmax::testing {

constexpr std::pair<DType, DType> type_pairs[] = {
    {DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::f32, DType::f32},  {DType::f64, DType::f64},
    {DType::f16, DType::f32}, {DType::bf16, DType::f32},  {DType::f32, DType::bf16}, {DType::f32, DType::f16}};

// The first GPU, whose primary context is current for the life of the test program's case.
struct Gpu {
  cuda::PrimaryContext context{0};
  cuda::ContextScope current{context.context()};
};

// Options of an engine on the current context. The cache is JITSOFTMAX_CACHE_DIR's, so that a second
// run of the suite compiles nothing.
inline Options gpu_options(const std::string& variant = "", MaskedRows masked = MaskedRows::nan) {
  Options options = Options::from_environment();
  options.device = Device::current();
  options.variant.name = variant;
  options.masked_rows = masked;
  return options;
}

// Compiles in parallel what a test is about to ask for.
inline void warm_up(Engine& engine, const std::vector<Problem>& problems) {
  (void)engine.warmup(problems, {cuda::architecture(cuda::current_device())});
}

class GpuCase {
 public:
  GpuCase(const Problem& problem, std::int64_t count, std::int64_t inner = 1) : problem_(problem) {
    rows.count = count;
    rows.inner = inner;
  }

  Rows rows;                   // strides, scale: set before fill(); pointers are set here
  std::int64_t in_offset = 0;  // elements from an address that is aligned to 256 bytes
  std::int64_t out_offset = 0;
  bool in_place = false;
  MaskedRows masked = MaskedRows::nan;

  // Sets the inputs to value(row, column), rounded to the type.
  void fill(const std::function<double(std::int64_t, std::int64_t)>& value) {
    in_ = Bytes(size_of(problem_.in), extent(problem_, rows.in_stride, rows.inner, rows.count), in_offset);
    out_ = Bytes(size_of(problem_.out), extent(problem_, rows.out_stride, rows.inner, rows.count), out_offset);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      for (std::int64_t j = 0; j < problem_.cols; ++j) {
        write(problem_.in, in_.first(), index_of(problem_, rows.in_stride, rows.inner, r, j), value(r, j));
      }
    }
    Rows host = rows;
    host.in = in_.first();
    expected_ = reference_softmax(problem_, host, masked);
  }

  // Normal numbers with deviation 3. The seed stands in the message of a failing check.
  void fill_random(unsigned seed) {
    seed_ = seed;
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 3);
    fill([&](std::int64_t, std::int64_t) { return normal(random); });
  }

  // The results, element j of row r at r * cols + j. Fails the test if a byte outside the rows changed.
  std::vector<double> run(const Kernel& kernel) {
    Bytes& target = in_place ? in_ : out_;
    cuda::DeviceBuffer in(in_.all().size());
    cuda::DeviceBuffer out(target.all().size());
    in.upload(in_.all().data(), in_.all().size());
    if (!in_place) out.upload(out_.all().data(), out_.all().size());
    Rows device = rows;
    device.in = static_cast<char*>(in.get()) + in_.first_at();
    device.out = in_place ? const_cast<void*>(device.in) : static_cast<char*>(out.get()) + out_.first_at();
    kernel.launch(device);
    cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");

    Bytes result = target;
    (in_place ? in : out).download(result.all().data(), result.all().size());
    Rows host = rows;
    host.out = result.first();
    std::vector<double> values = outputs(problem_, host);
    check_untouched(target, result);
    return values;
  }

  // Empty if the results are as near to the reference as promised, or within `relative` where given.
  std::string check(const Kernel& kernel, double relative = 0) {
    const std::vector<double> got = run(kernel);
    std::string wrong = relative == 0 ? check_close(problem_, got, expected_) : check_loosely(got, relative);
    return wrong.empty() ? wrong : wrong + " (seed " + std::to_string(seed_) + ")";
  }

  [[nodiscard]] const std::vector<double>& expected() const noexcept { return expected_; }

 private:
  // An array between guards.
  class Bytes {
   public:
    Bytes() = default;
    Bytes(int element, std::int64_t elements, std::int64_t offset)
        : first_at_(guard + static_cast<std::size_t>(offset * element)),
          bytes_(first_at_ + static_cast<std::size_t>(elements * element) + guard, char(0xa5)) {}
    [[nodiscard]] std::vector<char>& all() noexcept { return bytes_; }
    [[nodiscard]] const std::vector<char>& all() const noexcept { return bytes_; }
    [[nodiscard]] char* first() noexcept { return bytes_.data() + first_at_; }
    [[nodiscard]] std::size_t first_at() const noexcept { return first_at_; }

   private:
    static constexpr std::size_t guard = 256;
    std::size_t first_at_ = 0;
    std::vector<char> bytes_;
  };

  // Marks what the rows own in both and compares the rest.
  void check_untouched(Bytes before, Bytes after) const {
    for (std::int64_t r = 0; r < rows.count; ++r) {
      for (std::int64_t j = 0; j < problem_.cols; ++j) {
        const std::int64_t at = index_of(problem_, rows.out_stride, rows.inner, r, j);
        write(problem_.out, before.first(), at, 0);
        write(problem_.out, after.first(), at, 0);
      }
    }
    CHECK_MESSAGE(before.all() == after.all(), "a byte outside the rows was written");
  }

  [[nodiscard]] std::string check_loosely(const std::vector<double>& got, double relative) const {
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = expected_[i];
      if (std::isnan(want) ? std::isnan(got[i]) : got[i] == want) continue;
      if (is_close(problem_, got[i], want) || std::abs(got[i] - want) <= relative * std::abs(want)) continue;
      return "element " + std::to_string(i) + ": " + std::to_string(got[i]) + " instead of " + std::to_string(want);
    }
    return {};
  }

  Problem problem_;
  unsigned seed_ = 0;
  Bytes in_;
  Bytes out_;
  std::vector<double> expected_;
};

}  // namespace jitsoftmax::testing
