// Sizes in bytes, as people write them.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace jitsoftmax::base {

// Reads "500000", "64K", "64KB", "2M", "1G": digits and a unit of 1024, 1024² or 1024³ bytes, upper or lower
// case. Nothing for anything else, and for what is beyond 63 bits.
[[nodiscard]] inline std::optional<std::int64_t> parse_size(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || text.front() == '-') return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  if (unit.size() == 2 && (unit[1] == 'B' || unit[1] == 'b')) unit.remove_suffix(1);
  if (unit.empty()) return value;
  constexpr std::string_view units = "KkMmGg";
  const std::size_t index = units.find(unit);
  if (unit.size() != 1 || index == std::string_view::npos) return std::nullopt;
  const std::size_t shift = 10 * (index / 2 + 1);
  if (value > (std::numeric_limits<std::int64_t>::max() >> shift)) return std::nullopt;
  return value << shift;
}

}  // namespace jitsoftmax::base
