// A file system of a few blocks, mounted for one child process.
#pragma once

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

// What `body` returns in a child that alone sees a tmpfs with these options at `directory`; no_tmpfs where
// neither root nor a user namespace may mount one.
inline int in_small_tmpfs(const std::string& directory, const std::string& options, const std::function<int()>& body) {
  return in_child([&] {
    if (::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return no_tmpfs;
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
