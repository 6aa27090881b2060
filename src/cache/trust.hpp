// Trust: whether somebody else could have written a file or a directory.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include "base/files.hpp"

namespace jitsoftmax::cache {

// Why someone else could have written it, as a clause; empty: nobody else could.
[[nodiscard]] std::string distrust(const base::FileSystem::Info& info);

constexpr std::string_view not_a_file = "is no regular file, and is not removed";

// What sits at a path is not what belongs there, as told by FileSystem's error; empty: an I/O error.
[[nodiscard]] std::string_view misplaced(const std::error_code& error);

}  // namespace jitsoftmax::cache
