// Check: whether a file is an entry that a load would accept, without knowing its program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "cache/entry.hpp"
#include "cache/trust.hpp"

namespace jitsoftmax::cache {

enum class Condition : std::uint8_t {
  valid,
  other_version,  // undamaged, and never asked for by this version of the library
  damaged,
  refused,     // somebody else could have written it, or it is no regular file
  unreadable,  // an I/O error: its content may be in order
  gone,        // not there any more
};

struct Checked {
  Condition condition = Condition::valid;
  std::string reason = {};                // unless valid or gone: why, as a clause whose subject is the file
  std::optional<Description> entry = {};  // of a valid one, and of another version's where it can be read
  base::FileSystem::Info info = {};
};

// Reads all of it. `path` ends as entry_path() would have it.
[[nodiscard]] Checked check(const std::string& path, base::FileSystem& files = base::file_system(),
                            const Owners& trusted = {});

}  // namespace jitsoftmax::cache
