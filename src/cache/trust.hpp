// Trust: whether somebody else could have written a file or a directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/files.hpp"

namespace jitsoftmax::cache {

// Ids of the users who are trusted beside this process's user and root.
using Owners = std::vector<std::uint32_t>;

// Why someone else could have written it, as a clause; empty: nobody else could.
[[nodiscard]] std::string distrust(const base::FileSystem::Info& info, const Owners& trusted = {});

constexpr std::string_view not_a_file = "is no regular file, and is not removed";

enum class Standing : std::uint8_t { trusted, missing, refused, failed };

struct Verdict {
  Standing standing = Standing::trusted;
  std::string reason = {};     // refused or failed: why, as a clause whose subject is the path
  std::error_code error = {};  // failed: an I/O error, which says nothing about what is there
};

// Of a cache directory, or of a shard in it.
[[nodiscard]] Verdict directory_verdict(const std::string& path, base::FileSystem& files, const Owners& trusted = {});

struct TrustedFile {
  Verdict verdict;
  base::FileSystem::Info info;
  std::vector<char> bytes;  // empty unless trusted
};

// The whole of a file, if nobody else could have written it, which is decided on the open file. No larger one than
// `limit` is trusted.
[[nodiscard]] TrustedFile read_trusted(const std::string& path, std::int64_t limit, base::FileSystem& files,
                                       const Owners& trusted = {});
// No more of it than its first bytes, however large it is.
[[nodiscard]] TrustedFile read_trusted_start(const std::string& path, std::size_t count, base::FileSystem& files,
                                             const Owners& trusted = {});

}  // namespace jitsoftmax::cache
