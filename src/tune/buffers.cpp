#include "tune/buffers.hpp"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>

#include "cuda/driver.hpp"

namespace jitsoftmax::tune {
namespace {

constexpr float deviation = 3;  // of the inputs: maxima are distinct, and few exponentials underflow

// The first, the last and random ones between, few enough to be compared in a moment.
std::vector<std::int64_t> sample(std::int64_t slices, std::int64_t slice) {
  constexpr std::int64_t most_elements = 1 << 20;
  const std::int64_t count = std::clamp<std::int64_t>(most_elements / slice, std::min<std::int64_t>(slices, 2), 256);
  std::vector<std::int64_t> chosen;
  if (count >= slices) {
    for (std::int64_t i = 0; i < slices; ++i) chosen.push_back(i);
    return chosen;
  }
  std::mt19937_64 random(1);
  chosen = {0, slices - 1};
  while (static_cast<std::int64_t>(chosen.size()) < count) {
    chosen.push_back(std::uniform_int_distribution<std::int64_t>(0, slices - 1)(random));
  }
  return chosen;
}

// Slices of so many bytes, one after the other.
std::vector<std::byte> gather(const cuda::DeviceBuffer& buffer, const std::vector<std::int64_t>& slices,
                              std::int64_t bytes) {
  const auto each = static_cast<std::size_t>(bytes);
  std::vector<std::byte> result(each * slices.size());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    buffer.download(result.data() + i * each, each, static_cast<std::size_t>(slices[i]) * each);
  }
  return result;
}

}  // namespace

RotatedBuffers::RotatedBuffers(const Instruments& instruments, const Shape& shape, std::int64_t rotate_bytes)
    : shape_(shape) {
  const std::int64_t elements = shape.rows * shape.problem.cols;
  // Copies move whole packets of 16 bytes.
  const auto in_bytes = static_cast<std::size_t>(elements * size_of(shape.problem.in) + 16);
  const auto out_bytes = static_cast<std::size_t>(elements * size_of(shape.problem.out) + 16);
  const std::int64_t sets = std::clamp<std::int64_t>((rotate_bytes - 1) / shape.bytes() + 1, 2, 512);
  for (std::int64_t i = 0; i < sets; ++i) {
    sets_.push_back(std::make_unique<Set>(in_bytes, out_bytes));
    instruments.fill(sets_.back()->in.get(), shape.problem.in, elements, deviation, static_cast<int>(i), nullptr);
  }
  cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
}

Rows RotatedBuffers::rows(int set) const noexcept {
  const Set& buffers = *sets_[static_cast<std::size_t>(set)];
  Rows rows;
  rows.out = buffers.out.get();
  rows.in = buffers.in.get();
  rows.count = shape_.rows;
  rows.inner = shape_.inner;
  return rows;
}

RotatedBuffers::Sample RotatedBuffers::make_sample(MaskedRows masked) const {
  const std::int64_t slice = shape_.problem.cols * shape_.inner;
  std::vector<std::int64_t> slices = sample(shape_.rows / shape_.inner, slice);
  const std::vector<std::byte> in = gather(sets_[0]->in, slices, slice * size_of(shape_.problem.in));
  Rows rows;
  rows.in = in.data();
  rows.count = static_cast<std::int64_t>(slices.size()) * shape_.inner;
  rows.inner = shape_.inner;
  return {std::move(slices), masked, Reference(shape_.problem, rows, masked)};
}

Verdict RotatedBuffers::verify_sample(const std::function<void(const Rows&)>& launch, MaskedRows masked) {
  if (!sample_ || sample_->masked != masked) sample_ = make_sample(masked);
  const Rows all = rows(0);
  const std::int64_t row_bytes = shape_.problem.cols * size_of(shape_.problem.out);
  cuda::check(cuda::driver().MemsetD8(reinterpret_cast<CUdeviceptr>(all.out), 0xff,
                                      static_cast<std::size_t>(shape_.rows * row_bytes)),
              "cuMemsetD8");
  launch(all);
  cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
  return sample_->reference.compare(gather(sets_[0]->out, sample_->slices, row_bytes * shape_.inner).data());
}

}  // namespace jitsoftmax::tune
