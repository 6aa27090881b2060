#include "cache/trust.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace jitsoftmax::cache {

std::string distrust(const base::FileSystem::Info& info) {
  if (info.owner != ::geteuid() && info.owner != 0)
    return "belongs to user " + std::to_string(info.owner) + ", who is neither this user nor root";
  if ((info.mode & S_IWOTH) != 0) return "is writable by everybody (chmod go-w)";
  if ((info.mode & S_IWGRP) != 0) return "is writable by its group (chmod go-w)";
  return {};
}

std::string_view misplaced(const std::error_code& error) {
  if (error == std::errc::too_many_symbolic_link_levels) return "is a symbolic link";
  if (error == std::errc::not_a_directory) return "is no directory";
  if (error == std::errc::invalid_argument) return not_a_file;
  if (error == std::errc::file_too_large) return "is larger than an entry can be";
  return {};
}

}  // namespace jitsoftmax::cache
