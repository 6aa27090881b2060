// Walk: which files of a cache directory are the cache's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "cache/trust.hpp"

namespace jitsoftmax::cache {

// Where tuning records are, below a cache directory.
inline constexpr std::string_view records_folder = "records";

struct Fault {
  std::string path;
  std::string reason;  // a clause whose subject is the path
};

// Paths, sorted. By name alone: a file that is called as an entry may be anything.
struct Contents {
  std::vector<std::string> entries;
  std::vector<std::string> temporaries;  // of writers at work, or killed; those of tuning records too
  std::vector<Fault> faults;             // the directory or shards that are refused or cannot be listed
};

// Tuning records, and what others keep in the directory, are not seen. A directory that is not there is
// empty.
[[nodiscard]] Contents walk(const std::string& directory, base::FileSystem& files = base::file_system(),
                            const Owners& trusted = {});

}  // namespace jitsoftmax::cache
