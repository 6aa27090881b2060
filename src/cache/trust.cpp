#include "cache/trust.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace jitsoftmax::cache {
namespace {

// What sits at a path is not what belongs there, as told by FileSystem's error; empty: an I/O error.
std::string_view misplaced(const std::error_code& error) {
  if (error == std::errc::too_many_symbolic_link_levels) return "is a symbolic link";
  if (error == std::errc::not_a_directory) return "is no directory";
  if (error == std::errc::invalid_argument) return not_a_file;
  if (error == std::errc::file_too_large) return "is larger than an entry can be";
  return {};
}

Verdict verdict_of(const base::FileSystem::Info& info, const std::error_code& error, const Owners& trusted) {
  if (error == std::errc::no_such_file_or_directory) return {.standing = Standing::missing};
  if (const auto reason = misplaced(error); !reason.empty())
    return {.standing = Standing::refused, .reason = std::string(reason)};
  if (error) return {.standing = Standing::failed, .reason = "cannot be read: " + error.message(), .error = error};
  if (std::string reason = distrust(info, trusted); !reason.empty())
    return {.standing = Standing::refused, .reason = std::move(reason)};
  return {};
}

template <class Read>
TrustedFile judged(const Owners& trusted, Read read) {
  TrustedFile file;
  std::error_code error;
  file.bytes = read(file.info, error);
  file.verdict = verdict_of(file.info, error, trusted);
  if (file.verdict.standing != Standing::trusted) file.bytes.clear();
  return file;
}

}  // namespace

std::string distrust(const base::FileSystem::Info& info, const Owners& trusted) {
  if (info.owner != ::geteuid() && info.owner != 0 && std::ranges::find(trusted, info.owner) == trusted.end())
    return "belongs to user " + std::to_string(info.owner) +
           ", who is neither this user nor root nor trusted (JITSOFTMAX_TRUSTED_OWNERS)";
  if ((info.mode & S_IWOTH) != 0) return "is writable by everybody (chmod go-w)";
  if ((info.mode & S_IWGRP) != 0) return "is writable by its group (chmod go-w)";
  return {};
}

Verdict directory_verdict(const std::string& path, base::FileSystem& files, const Owners& trusted) {
  std::error_code error;
  const auto info = files.directory_info(path, error);
  return verdict_of(info, error, trusted);
}

TrustedFile read_trusted(const std::string& path, std::int64_t limit, base::FileSystem& files, const Owners& trusted) {
  return judged(trusted, [&](base::FileSystem::Info& info, std::error_code& error) {
    return files.read(path, limit, info, error);
  });
}

TrustedFile read_trusted_start(const std::string& path, std::size_t count, base::FileSystem& files,
                               const Owners& trusted) {
  return judged(trusted, [&](base::FileSystem::Info& info, std::error_code& error) {
    return files.read_start(path, count, info, error);
  });
}

}  // namespace jitsoftmax::cache
