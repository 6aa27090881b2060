// Specialization: one exact kernel as a plain value, with one canonical, readable spelling. The
// spelling is the NVRTC name expression, a field of the cache key and what people read.
#pragma once

#include <cstdint>
#include <jitsoftmax/kernel.hpp>
#include <jitsoftmax/problem.hpp>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "kernel_templates/config.cuh"

namespace jitsoftmax::plan {

// `counted` is for comparison only: neither the built-in choice nor the candidates have it.
enum class Family : std::uint8_t {
  safe,
  looped,
  registers,
  staged,
  split,
  counted,
  strided,
  strided_registers,
  strided_staged
};

// Families that hold a row between one read and one write.
[[nodiscard]] constexpr bool reads_once(Family family) noexcept {
  return family == Family::registers || family == Family::staged || family == Family::counted ||
         family == Family::strided_registers || family == Family::strided_staged;
}

// Those of them in which all of it, or a part, is in shared memory meanwhile.
[[nodiscard]] constexpr bool waits_in_shared_memory(Family family) noexcept {
  return family == Family::staged || family == Family::strided_staged;
}

// Families for rows whose elements are apart; no other family serves them.
[[nodiscard]] constexpr bool is_strided(Family family) noexcept {
  return family == Family::strided || family == Family::strided_registers || family == Family::strided_staged;
}

// Families whose kernels may be compiled for a number of columns; others are told it at the launch.
[[nodiscard]] constexpr bool may_know_columns(Family family) noexcept { return family != Family::counted; }

struct Specialization {
  Family family = Family::looped;
  kernels::Config config;
  std::int64_t cols = 0;  // 0: Runtime columns
  DType in = DType::f32;
  DType out = DType::f32;
  Op op = Op::softmax;
  // Launches of fewer or more rows take another specialization of the bundle. No part of the code or its name.
  std::int64_t least_rows = 0;
  std::int64_t most_rows = std::numeric_limits<std::int64_t>::max();
  Origin origin = Origin::built_in;  // no part of the code or its name either
};

// Rows that a block, or a cluster of blocks, works on.
[[nodiscard]] constexpr int rows_of_tile(const Specialization& s) noexcept {
  return is_strided(s.family) ? s.config.rows * s.config.vector : s.config.rows;
}

// Of the input, in a tile; of rows that blocks hold, whose length is known.
[[nodiscard]] constexpr std::int64_t bytes_of_tile(const Specialization& s) noexcept {
  return rows_of_tile(s) * s.cols * size_of(s.in);
}

// "registers<Config{.threads=512,.vector=4,.elements=8,.aligned=true,.shared=128},Static<4096>,float,float,Softmax>"
[[nodiscard]] std::string name_expression(const Specialization& specialization);

[[nodiscard]] std::string_view name_of(Family family) noexcept;
[[nodiscard]] std::optional<Family> family_named(std::string_view name) noexcept;

// The file of kernel_templates/ that defines the family.
[[nodiscard]] std::string_view template_file(Family family) noexcept;

[[nodiscard]] std::string_view name_of(DType type) noexcept;  // "f16", "bf16", "f32", "f64"
[[nodiscard]] std::optional<DType> dtype_named(std::string_view name) noexcept;
[[nodiscard]] std::string_view name_of(Op op) noexcept;  // "softmax", "log_softmax"

// "4096 f16->f32 log_softmax strided", for messages.
[[nodiscard]] std::string describe(const Problem& problem);

// The problem that it is of; one of no columns where they are known at the launch only.
[[nodiscard]] Problem problem_of(const Specialization& specialization) noexcept;

// Bytes of the type that sums are formed in: f64 for f64, else f32.
[[nodiscard]] constexpr int accumulator_bytes(DType in) noexcept { return in == DType::f64 ? 8 : 4; }

}  // namespace jitsoftmax::plan
