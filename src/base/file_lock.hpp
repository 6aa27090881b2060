// FileLock: one process at a time, by an advisory lock on a file.
#pragma once

#include <string>
#include <system_error>

namespace jitsoftmax::base {

// Held until it is destroyed, or its process ends in whatever way: nothing has to be cleaned up. The file
// is created where it is missing, mode 0600, and stays.
class FileLock {
 public:
  // Waits for whoever holds it. Where there are no locks (some network file systems) `error` says so and
  // nothing is held.
  FileLock(const std::string& path, std::error_code& error);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace jitsoftmax::base
