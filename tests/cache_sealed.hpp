// What an attacker or a bug would make: bytes under a checksum that holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cache/key.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::testing {

template <class Bytes>
void store_number(Bytes& bytes, std::size_t offset, std::uint64_t value, std::size_t size = sizeof(std::uint64_t)) {
  for (std::size_t i = 0; i < size; ++i) bytes[offset + i] = static_cast<char>((value >> (8 * i)) & 0xff);
}

// The last 16 bytes are made the checksum of those before them.
template <class Bytes = std::vector<char>>
[[nodiscard]] Bytes resealed(Bytes bytes) {
  const std::size_t end = bytes.size() - 16;
  const cache::Key checksum = cache::digest_of(std::span<const char>(bytes).first(end));
  store_number(bytes, end, checksum.high);
  store_number(bytes, end + 8, checksum.low);
  return bytes;
}

// The bytes with the magic, schema, templates and checksum of an entry of this library; nothing if they
// are too few for that. Offsets as cache/entry.hpp has them.
[[nodiscard]] inline std::optional<std::vector<char>> sealed_entry(std::span<const char> bytes) {
  constexpr std::string_view magic = "jsmaxjit";
  constexpr std::size_t templates_at = 8 + 4 + 16;
  if (bytes.size() < templates_at + 16 + 16) return std::nullopt;
  std::vector<char> sealed(bytes.begin(), bytes.end());
  std::memcpy(sealed.data(), magic.data(), magic.size());
  store_number(sealed, magic.size(), cache::schema, 4);
  const cache::Key templates = cache::digest_of(jit::templates());
  store_number(sealed, templates_at, templates.high);
  store_number(sealed, templates_at + 8, templates.low);
  return resealed(std::move(sealed));
}

}  // namespace jitsoftmax::testing
