// Occupancy: how many blocks of a kernel a multiprocessor holds at once, from what the kernel takes. Pure.
//
// The limits are those of the CUDA C++ Programming Guide, table "Technical Specifications per Compute
// Capability"; the rules by which registers and shared memory are given out are those of the toolkit's
// cuda_occupancy.h.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string_view>

#include "plan/specialization.hpp"

namespace jitsoftmax::plan {

constexpr int register_step = 8;  // a thread gets a multiple of so many registers: a warp 256

struct MultiprocessorLimits {
  int blocks = 0;
  int warps = 0;
  int shared_bytes = 0;  // of all blocks, with what the driver takes of each
};

// Nothing for an architecture that is not in the table.
[[nodiscard]] std::optional<MultiprocessorLimits> multiprocessor_limits(const Arch& arch) noexcept;

// What the blocks of a multiprocessor run out of first.
enum class Bound : std::uint8_t { blocks, warps, registers, shared };
[[nodiscard]] std::string_view name_of(Bound bound) noexcept;  // "blocks", "warps", "registers", "shared memory"

struct Occupancy {
  int blocks = 0;  // 0: not even one fits
  int warps = 0;
  Bound bound = Bound::blocks;
};

// Of blocks of so many threads with so many registers each and so much shared memory, static and dynamic
// together. An upper bound: the driver may leave more of the memory to the L1 cache, and the blocks of a
// cluster need room at the same time on neighbouring multiprocessors.
[[nodiscard]] Occupancy occupancy(int threads, int registers, std::int64_t shared_bytes,
                                  const MultiprocessorLimits& limits) noexcept;

// Bytes of the input that a block's threads hold at a time: at most their part of the rows.
[[nodiscard]] std::int64_t bytes_held(const Specialization& specialization) noexcept;

}  // namespace jitsoftmax::plan
