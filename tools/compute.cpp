#include "compute.hpp"

#include <algorithm>
#include <cstddef>

#include "cuda/memory.hpp"
#include "interrupt.hpp"

namespace jitsoftmax::tools {
namespace {

struct Extent {
  std::size_t in;
  std::size_t out;
};

// Bytes of one step of the outer dimension.
Extent extent_of(const Work& work) {
  const auto elements = static_cast<std::size_t>(work.split.cols * work.split.inner);
  return {elements * static_cast<std::size_t>(size_of(work.problem.in)),
          elements * static_cast<std::size_t>(size_of(work.problem.out))};
}

// How many steps of the outer dimension fit in `budget` bytes, at least one.
std::int64_t steps_in(std::size_t budget, const Work& work) {
  const Extent extent = extent_of(work);
  const auto steps = static_cast<std::int64_t>(budget / (extent.in + extent.out));
  return std::clamp<std::int64_t>(steps, 1, work.split.outer);
}

Rows rows_of(const Work& work, std::int64_t steps, const void* in, void* out) {
  Rows rows;
  rows.in = in;
  rows.out = out;
  rows.count = steps * work.split.inner;
  rows.inner = work.split.inner;
  rows.scale = work.scale;
  return rows;
}

}  // namespace

void compute_on_host(const Kernel& kernel, const Work& work, std::size_t slice_bytes) {
  const std::int64_t slice = steps_in(slice_bytes, work);
  const Extent extent = extent_of(work);
  for (std::int64_t first = 0; first < work.split.outer; first += slice) {
    stop_if_interrupted();
    const std::int64_t steps = std::min(slice, work.split.outer - first);
    const auto at = static_cast<std::size_t>(first);
    kernel.launch(rows_of(work, steps, work.in + at * extent.in, work.out + at * extent.out));
  }
}

void compute_on_cuda(const Kernel& kernel, const Work& work, std::size_t slice_bytes) {
  const std::int64_t slice = steps_in(std::min(cuda::free_device_bytes() / 4 * 3, slice_bytes), work);
  const Extent extent = extent_of(work);
  const auto largest = static_cast<std::size_t>(slice);
  cuda::DeviceBuffer in(largest * extent.in);
  cuda::DeviceBuffer out(largest * extent.out);
  for (std::int64_t first = 0; first < work.split.outer; first += slice) {
    stop_if_interrupted();
    const std::int64_t steps = std::min(slice, work.split.outer - first);
    const auto at = static_cast<std::size_t>(first);
    const auto count = static_cast<std::size_t>(steps);
    in.upload(work.in + at * extent.in, count * extent.in);
    kernel.launch(rows_of(work, steps, in.get(), out.get()));
    out.download(work.out + at * extent.out, count * extent.out);
  }
}

}  // namespace jitsoftmax::tools
