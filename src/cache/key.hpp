// Key: the name of a compiled program, computed without NVRTC and without a driver.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "jit/source.hpp"

namespace jitsoftmax::cache {

struct Key {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  [[nodiscard]] std::string hex() const;  // 32 lower-case digits
  friend constexpr bool operator==(const Key&, const Key&) noexcept = default;
};

// XXH128 over length-prefixed fields: schema number, name and text of every template, program
// text, name expression, every option in order, architecture.
[[nodiscard]] Key key_of(const jit::Program& program, std::span<const jit::TemplateFile> templates);

}  // namespace jitsoftmax::cache
