// Tuned: the picks of tuning records, in the place of the built-in choice. Pure.
#pragma once

#include <cstdint>
#include <jitsoftmax/problem.hpp>
#include <optional>
#include <string_view>

#include "plan/choice.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax::plan {

// How many rows a pick is for. A launch tells no more of them apart, so neither does tuning.
enum class RowsBucket : std::uint8_t { few, many };

// The built-in choice has a kernel of its own for up to as many rows, where it has one (choice.cpp).
constexpr std::int64_t most_few_rows = 64;

[[nodiscard]] constexpr RowsBucket bucket_of(std::int64_t rows) noexcept {
  return rows <= most_few_rows ? RowsBucket::few : RowsBucket::many;
}
[[nodiscard]] std::string_view name_of(RowsBucket bucket) noexcept;  // "few", "many"
[[nodiscard]] constexpr std::int64_t fewest_rows(RowsBucket bucket) noexcept {
  return bucket == RowsBucket::few ? 1 : most_few_rows + 1;
}

// What is tuned: a specialization with its alignment left open, as candidates() makes them.
[[nodiscard]] Specialization unaligned(const Specialization& member) noexcept;

// The built-in choice for so many packed, aligned rows, with its alignment left open.
[[nodiscard]] Specialization chosen_for(const Bundle& built_in, std::int64_t rows) noexcept;

// The specialization of this spelling, its alignment left open; nothing if it is not one that this
// library makes for the problem. What comes back has been checked: it is legal, and spelled the same.
[[nodiscard]] std::optional<Specialization> specialization_named(const Problem& problem, std::string_view spelling);

// A pick a bucket, its alignment left open.
struct Tuned {
  std::optional<Specialization> few = {};
  std::optional<Specialization> many = {};
  std::int64_t many_rows = fewest_rows(RowsBucket::many);  // that it was found with
};

// The bundle in which the picks stand for the built-in members of their buckets. A bucket without a pick
// keeps what the built-in choice has for it, as does one whose pick is the built-in choice; so do more rows than a pick
// was found with, if it has another kernel for them.
[[nodiscard]] Bundle with_picks(const Bundle& built_in, const Tuned& tuned);

}  // namespace jitsoftmax::plan
