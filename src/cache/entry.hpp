// Entry: the file format of one cached kernel.
//
// All numbers are little-endian; a text is its length (8 bytes), then its bytes (fields.hpp).
//
//     magic "jsmaxjit" | schema (4) | key: high (8), low (8)
//     templates: XXH128 of all template files, high (8), low (8)
//     architecture: major (4), minor (4), suffix (1)
//     program text | name expression | number of options (8), options
//     payload kind (1) | NVRTC version | lowered kernel name
//     registers (4) | stack bytes (4) | spill bytes (4) | static shared bytes (4)
//     payload: length (8), bytes
//     XXH128 of everything before it: high (8), low (8)
//
// Magic, schema and checksum keep their place and meaning in every schema, so that "damaged" and
// "made by another version" can be told apart. An entry holds no path, so it may be moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cache/key.hpp"
#include "jit/cubin.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::cache {

// Nothing larger is read or written. Cubins of this library have some 10 to 100 KB.
inline constexpr std::int64_t max_entry_bytes = std::int64_t{64} << 20;

// The file's bytes.
[[nodiscard]] std::vector<char> serialize(const Key& key, const jit::Program& program, const jit::Cubin& cubin);

// Whether it is an entry of this library, of whichever version and however damaged behind its magic, which
// is all that is looked at.
inline constexpr std::size_t entry_magic_bytes = 8;
[[nodiscard]] bool begins_as_entry(std::span<const char> bytes) noexcept;

// What an entry says about itself.
struct Description {
  Key key;
  Key templates;  // digest_of() the templates that made it
  jit::Program program;
  jit::Cubin cubin;
};

// Why bytes are not the entry that was asked for: "its checksum differs", ... A clause whose
// subject is the file.
struct Rejection {
  std::string reason;
  bool other_version = false;  // undamaged, but of a library with another schema
};

// Reads an entry without knowing its program. A Description passed every check that needs no
// program: magic, checksum, schema, exact length, a payload of the announced kind, no empty name.
// Reads nothing past `bytes`, allocates no more than they hold, and never throws for any content.
[[nodiscard]] std::variant<Description, Rejection> inspect(std::span<const char> bytes);

// inspect(), and it is the entry of this key, made from this program and this library's templates.
[[nodiscard]] std::variant<jit::Cubin, Rejection> parse(std::span<const char> bytes, const Key& key,
                                                        const jit::Program& program);

}  // namespace jitsoftmax::cache
