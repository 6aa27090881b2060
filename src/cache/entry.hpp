// Entry: the file format of one cached kernel.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cache/key.hpp"
#include "jit/cubin.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::cache {

// The file's bytes: magic, format, key, echo of the fields that made the key, the cubin with its
// facts, checksum over all of it.
[[nodiscard]] std::vector<char> serialize(const Key& key, const jit::Program& program, const jit::Cubin& cubin);

// Why bytes are not the entry that was asked for: "truncated", "checksum differs", ...
struct Rejection {
  std::string reason;
};

// Reads nothing past `bytes`, allocates no more than they hold, and never throws for any content.
[[nodiscard]] std::variant<jit::Cubin, Rejection> parse(std::span<const char> bytes, const Key& key,
                                                        const jit::Program& program);

}  // namespace jitsoftmax::cache
