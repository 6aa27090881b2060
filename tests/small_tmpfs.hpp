// A file system of a few blocks, mounted for one child process.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "unit/cache_fixtures.hpp"

namespace fixtures {

constexpr int no_tmpfs = 77;  // ctest's SKIP_RETURN_CODE

// Makes a user root of a namespace of its own, so that files made in it have an owner.
inline bool become_root_of_namespace() {
  const auto write = [](const char* path, const std::string& text) {
    const int file = ::open(path, O_WRONLY | O_CLOEXEC);
    const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(file);
    return written;
  };
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  return ::unshare(CLONE_NEWUSER) == 0 && write("/proc/self/setgroups", "deny") &&
         write("/proc/self/uid_map", "0 " + user + " 1") && write("/proc/self/gid_map", "0 " + group + " 1");
}

// What `body` returns in a child that alone sees a tmpfs with these options at `directory`; no_tmpfs where
// neither root nor a user namespace may mount one.
inline int in_small_tmpfs(const std::string& directory, const std::string& options, const std::function<int()>& body) {
  return in_child([&] {
    if (::geteuid() != 0 && !become_root_of_namespace()) return no_tmpfs;
    if (::unshare(CLONE_NEWNS) != 0) return no_tmpfs;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return no_tmpfs;
    if (::mount("tmpfs", directory.c_str(), "tmpfs", 0, (options + ",mode=0700").c_str()) != 0) return no_tmpfs;
    return body();
  });
}

// Ends the program as skipped, since doctest cannot.
inline void skip_without_tmpfs(int result) {
  if (result != no_tmpfs) return;
  std::printf("skipped: neither root nor a user namespace may mount a tmpfs here\n");
  std::exit(no_tmpfs);  // NOLINT(concurrency-mt-unsafe): nothing else runs
}

}  // namespace fixtures
