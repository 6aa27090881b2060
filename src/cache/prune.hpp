// Prune: removes what was used least recently from the writable directory.
//
// A reader is never broken: a file that is unlinked while a process has it open stays whole for that
// process, and who comes later finds a miss. Nothing is locked: where two processes prune at once, or
// one writes meanwhile, each entry is either there and whole, or not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "cache/walk.hpp"

namespace jitsoftmax::cache {

// A writer is done with its temporary within seconds. One that was last written to so long ago
// belongs to a process that was killed.
inline constexpr std::int64_t abandoned_seconds = 3600;

// What may stay. Times are seconds since 1970.
struct Keep {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();       // of entries together
  std::int64_t used_since = std::numeric_limits<std::int64_t>::min();  // by the time of the file
};

struct Entry {
  std::string path;
  std::int64_t bytes = 0;
  std::int64_t used = 0;
};

struct Pruned {
  std::vector<Entry> removed;            // the least recently used first
  std::vector<std::string> temporaries;  // that were abandoned, removed too
  std::vector<Fault> faults;             // what could not be looked at or removed
  std::size_t kept = 0;
  std::int64_t kept_bytes = 0;
};

enum class PruneMode : std::uint8_t { remove, pretend };

// Removes abandoned temporaries, the entries that were not used since `keep.used_since`, and then as
// few of the rest as bring the entries down to `keep.bytes`. An entry is a regular file that nobody
// else could have written, has an entry's name and begins as an entry does; nothing else is ever
// removed, or counted. `now`: seconds since 1970.
[[nodiscard]] Pruned prune(const std::string& directory, const Keep& keep, PruneMode mode, std::int64_t now,
                           base::FileSystem& files = base::file_system(), const Owners& trusted = {});

// prune() down to so many bytes, if there are more. Looks at no content as long as there are not; what
// cannot be removed stays, and is tried again next time.
void shrink(const std::string& directory, std::int64_t bytes, base::FileSystem& files = base::file_system(),
            const Owners& trusted = {});

}  // namespace jitsoftmax::cache
