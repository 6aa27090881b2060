// The legal search space: what can be compiled at all, and what of it may be fast.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/specialization.hpp"

namespace jitsoftmax::plan {

// Why no kernel can be compiled from this specialization, as a clause; empty if one can. What the
// kernels assert when they are compiled is refused here first, with a reason for people.
[[nodiscard]] std::string illegal(const Specialization& specialization);

// A specialization with its columns known, its shared memory planned and rows that need not be
// aligned.
[[nodiscard]] Specialization specialization(const Problem& problem, Family family, const kernels::Config& config);

// Every legal specialization that may be the fastest for some number of rows.
[[nodiscard]] std::vector<Specialization> candidates(const Problem& problem, const Arch& arch);

// A tile of rows of 16-bit elements over the given warps of each block, in the registers and the shared memory of whole
// multiprocessors; nothing if the columns are too many or too few for that.
[[nodiscard]] std::optional<Specialization> staged_tile(const Problem& problem, int warps, int cluster);

// Up to 16 blocks a cluster, and a block with most of a multiprocessor's shared memory.
[[nodiscard]] bool has_large_clusters(const Arch& arch) noexcept;

// Whether its kernel has a form for few rows (Config::low_latency).
[[nodiscard]] bool may_have_low_latency(const Specialization& specialization) noexcept;

// Whether its kernel has a form in which the tiles of a launch read one after another (Config::staggered).
[[nodiscard]] bool may_be_staggered(const Specialization& specialization) noexcept;

// Whether that is worth its while: small tiles are so many that they are out of step soon.
[[nodiscard]] bool is_worth_staggering(const Specialization& specialization, const Arch& arch) noexcept;

// Tiles of a launch from which on; fewer are read before turns are of use. Of a specialization that may be staggered.
[[nodiscard]] std::int64_t fewest_staggered_tiles(const Specialization& specialization) noexcept;

// Elements that a thread of a block of so many holds without spilling; `packed`: as the bits in memory.
[[nodiscard]] int most_elements_in_registers(const Problem& problem, bool packed, int threads) noexcept;

constexpr int most_elements = 64;  // of a thread, but for the staged families: more only costs compile time

// The widest access, in elements, that both sides can take: 16 bytes of the larger type.
[[nodiscard]] constexpr int widest_vector(const Problem& problem) noexcept {
  return 16 / (size_of(problem.in) > size_of(problem.out) ? size_of(problem.in) : size_of(problem.out));
}

}  // namespace jitsoftmax::plan
