#include "plan/occupancy.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace jitsoftmax::plan {
namespace {

constexpr int warp = kernels::warp_size;
constexpr int registers = 64 * 1024;    // of a multiprocessor
constexpr int partitions = 4;           // of a multiprocessor: each has its own registers, for its own warps
constexpr int shared_step = 128;        // bytes that shared memory is given out in
constexpr int shared_of_driver = 1024;  // bytes of every block that the driver takes for itself

struct ArchLimits {
  int major = 0;
  int minor = 0;
  MultiprocessorLimits limits;
};
constexpr std::array<ArchLimits, 7> table{{
    {8, 0, {.blocks = 32, .warps = 64, .shared_bytes = 164 * 1024}},
    {8, 6, {.blocks = 16, .warps = 48, .shared_bytes = 100 * 1024}},
    {8, 9, {.blocks = 24, .warps = 48, .shared_bytes = 100 * 1024}},
    {9, 0, {.blocks = 32, .warps = 64, .shared_bytes = 228 * 1024}},
    {10, 0, {.blocks = 32, .warps = 64, .shared_bytes = 228 * 1024}},
    {10, 3, {.blocks = 32, .warps = 64, .shared_bytes = 228 * 1024}},
    {12, 0, {.blocks = 24, .warps = 48, .shared_bytes = 100 * 1024}},
}};

constexpr int round_up(int value, int step) noexcept { return (value + step - 1) / step * step; }

}  // namespace

std::optional<MultiprocessorLimits> multiprocessor_limits(const Arch& arch) noexcept {
  for (const ArchLimits& known : table) {
    if (known.major == arch.major && known.minor == arch.minor) return known.limits;
  }
  return std::nullopt;
}

std::string_view name_of(Bound bound) noexcept {
  switch (bound) {
    case Bound::blocks:
      return "blocks";
    case Bound::warps:
      return "warps";
    case Bound::registers:
      return "registers";
    case Bound::shared:
      break;
  }
  return "shared memory";
}

Occupancy occupancy(int threads, int registers_each, std::int64_t shared_bytes,
                    const MultiprocessorLimits& limits) noexcept {
  const int warps = round_up(std::max(threads, 1), warp) / warp;
  const int of_warp = round_up(std::max(registers_each, 1), register_step) * warp;
  const int warps_with_registers = registers / partitions / of_warp * partitions;
  const std::int64_t of_block = (shared_bytes + shared_of_driver + shared_step - 1) / shared_step * shared_step;

  Occupancy result{.blocks = limits.blocks};
  for (const auto& [bound, blocks] : {std::pair{Bound::warps, limits.warps / warps},
                                      {Bound::registers, warps_with_registers / warps},
                                      {Bound::shared, static_cast<int>(limits.shared_bytes / of_block)}}) {
    if (blocks < result.blocks) result = {.blocks = blocks, .bound = bound};
  }
  result.warps = result.blocks * warps;
  return result;
}

std::int64_t bytes_held(const Specialization& s) noexcept {
  std::int64_t elements = std::int64_t{s.config.threads} * s.config.rows * s.config.elements;
  if (s.cols != 0) {
    // Of a row of more elements than the threads hold there is always enough; the product cannot overflow.
    const std::int64_t cols = std::min(s.cols, elements * s.config.cluster);
    elements = std::min(elements, (rows_of_tile(s) * cols - 1) / s.config.cluster + 1);
  }
  return elements * size_of(s.in);
}

}  // namespace jitsoftmax::plan
