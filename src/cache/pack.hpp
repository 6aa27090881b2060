// Pack: the file format of many cache entries and tuning records in one file, to carry them elsewhere.
//
// All numbers are little-endian; a text is its length (8 bytes), then its bytes.
//
//     magic "jsmaxpak" | format (4) | templates: XXH128 of all template files, high (8), low (8)
//     number of entries (8) | number of records (8)
//     entries, as texts: the bytes of an entry's file, by ascending key
//     records, as texts: those of a record's file, ascending as bytes
//     XXH128 of everything before it: high (8), low (8)
//
// It holds no path and no name of a file: where an entry belongs follows from its key. Equal contents are
// equal bytes. Magic, format and checksum keep their place and meaning in every format.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cache/entry.hpp"
#include "cache/key.hpp"

namespace jitsoftmax::cache {

// Nothing larger is written or read: it is in memory as a whole.
inline constexpr std::int64_t max_pack_bytes = std::int64_t{4} << 30;

// Views into the bytes that it was read from.
struct Pack {
  std::vector<std::span<const char>> entries;
  std::vector<std::span<const char>> records;
};

// The file's bytes. Entries as serialize() makes them, each under its key; records as tune::to_text() does.
[[nodiscard]] std::vector<char> serialize_pack(const std::map<Key, std::vector<char>>& entries,
                                               const std::set<std::string>& records);

// A Pack passed every check but that of its records' content, for which see tune/record_text.hpp: magic,
// checksum, format, exact length, entries and records in order and each once, and each entry is one that a
// load of this library accepts. A Rejection is a clause whose subject is the file. Reads nothing past
// `bytes`, allocates no more than a small multiple of what they hold, and never throws for any content.
[[nodiscard]] std::variant<Pack, Rejection> read_pack(std::span<const char> bytes);

}  // namespace jitsoftmax::cache
