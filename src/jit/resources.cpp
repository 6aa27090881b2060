#include "jit/resources.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace jitsoftmax::jit {
namespace {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Calls `use` with the number in front of each occurrence of `unit`, as in "32 registers".
template <typename Use>
void for_each_number_before(std::string_view log, std::string_view unit, Use use) noexcept {
  for (std::size_t at = log.find(unit); at != std::string_view::npos; at = log.find(unit, at + unit.size())) {
    std::size_t begin = at;
    while (begin > 0 && is_digit(log[begin - 1])) --begin;
    std::uint32_t value = 0;
    if (std::from_chars(log.data() + begin, log.data() + at, value).ec == std::errc{}) use(value);
  }
}

std::uint32_t sum(std::string_view log, std::string_view unit) noexcept {
  std::uint32_t total = 0;
  for_each_number_before(log, unit, [&](std::uint32_t value) { total += value; });
  return total;
}

std::uint32_t largest(std::string_view log, std::string_view unit) noexcept {
  std::uint32_t most = 0;
  for_each_number_before(log, unit, [&](std::uint32_t value) { most = std::max(most, value); });
  return most;
}

// From the line that begins the kernel's report to the next such line. Some versions have none: one kernel's log.
std::string_view part_of(std::string_view log, std::string_view kernel) noexcept {
  constexpr std::string_view beginning = "Compiling entry function '";
  if (log.find(beginning) == std::string_view::npos) return log;
  for (std::size_t at = log.find(beginning); at != std::string_view::npos;) {
    const std::string_view part = log.substr(at + beginning.size());
    const std::size_t next = part.find(beginning);
    if (part.starts_with(kernel) && part.substr(kernel.size()).starts_with('\'')) return part.substr(0, next);
    at = next == std::string_view::npos ? next : at + beginning.size() + next;
  }
  return {};
}

}  // namespace

Resources parse_resources(std::string_view log, std::string_view kernel) noexcept {
  log = part_of(log, kernel);
  return {.registers = largest(log, " registers"),
          .stack_bytes = sum(log, " bytes stack frame"),
          .spill_bytes = sum(log, " bytes spill stores") + sum(log, " bytes spill loads"),
          .shared_bytes = largest(log, " bytes smem")};
}

}  // namespace jitsoftmax::jit
