// Key: the name of a compiled program, computed without NVRTC and without a driver.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "jit/source.hpp"

namespace jitsoftmax::cache {

// Raised whenever the meaning of a key or the format of an entry changes. It is part of both, so
// that libraries of different schemas share a directory without ever meeting in one file.
inline constexpr std::uint32_t schema = 1;

struct Key {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  [[nodiscard]] std::string hex() const;  // 32 lower-case digits
  // NOLINTNEXTLINE(modernize-use-nullptr): what is defaulted is misread
  friend constexpr auto operator<=>(const Key&, const Key&) noexcept = default;

  struct Hash {  // a key is uniform already
    std::size_t operator()(const Key& key) const noexcept { return static_cast<std::size_t>(key.low); }
  };
};

// XXH128 over length-prefixed fields: schema number, name and text of every template, program
// text, name expression, every option in order, architecture.
[[nodiscard]] Key key_of(const jit::Program& program, std::span<const jit::TemplateFile> templates);

// XXH128 over names and texts of the templates alone: tells entries that this library could have
// made from those of other versions.
[[nodiscard]] Key digest_of(std::span<const jit::TemplateFile> templates);

// XXH128 of plain bytes.
[[nodiscard]] Key digest_of(std::span<const char> bytes) noexcept;

}  // namespace jitsoftmax::cache
