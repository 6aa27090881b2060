#include "base/users.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>
#include <vector>

namespace jitsoftmax::base {

std::optional<std::uint32_t> user_id(const std::string& name_or_id) {
  std::uint32_t id = 0;
  const char* const end = name_or_id.data() + name_or_id.size();
  const auto [rest, error] = std::from_chars(name_or_id.data(), end, id);
  // The greatest stands for "no user" in system calls.
  if (error == std::errc{} && rest == end && id != std::numeric_limits<std::uint32_t>::max()) return id;

  constexpr std::size_t enough = std::size_t{1} << 20;
  std::vector<char> buffer(4096);
  struct passwd user = {};
  struct passwd* found = nullptr;
  while (::getpwnam_r(name_or_id.c_str(), &user, buffer.data(), buffer.size(), &found) == ERANGE &&
         buffer.size() < enough) {
    buffer.resize(2 * buffer.size());
  }
  if (found == nullptr) return std::nullopt;
  return user.pw_uid;
}

}  // namespace jitsoftmax::base
