#include "tune/buffers.hpp"

#include <algorithm>
#include <cstddef>
#include <random>

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

Verdict RotatedBuffers::verify_sample(const std::function<void(const Rows&)>& launch, MaskedRows masked) const {
  const Problem& problem = shape_.problem;
  const Rows all = rows(0);
  const std::int64_t slice = problem.cols * shape_.inner;  // rows that are verified together
  const std::int64_t slices = shape_.rows / shape_.inner;
  const auto out_bytes = static_cast<std::size_t>(slices * slice * size_of(problem.out));
  cuda::check(cuda::driver().MemsetD8(reinterpret_cast<CUdeviceptr>(all.out), 0xff, out_bytes), "cuMemsetD8");
  launch(all);
  cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");

  const std::vector<std::int64_t> chosen = sample(slices, slice);
  const auto in_slice = static_cast<std::size_t>(slice * size_of(problem.in));
  const auto out_slice = static_cast<std::size_t>(slice * size_of(problem.out));
  std::vector<std::byte> in(in_slice * chosen.size());
  std::vector<std::byte> out(out_slice * chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto at = static_cast<std::size_t>(chosen[i]);
    sets_[0]->in.download(in.data() + i * in_slice, in_slice, at * in_slice);
    sets_[0]->out.download(out.data() + i * out_slice, out_slice, at * out_slice);
  }
  Rows host;
  host.in = in.data();
  host.out = out.data();
  host.count = static_cast<std::int64_t>(chosen.size()) * shape_.inner;
  host.inner = shape_.inner;
  return verify(problem, host, masked);
}

}  // namespace jitsoftmax::tune
