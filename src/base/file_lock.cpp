#include "base/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace jitsoftmax::base {

FileLock::FileLock(const std::string& path, std::error_code& error)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  error.clear();
  int result = descriptor_ < 0 ? -1 : 0;
  if (result == 0) {
    do {
      result = ::flock(descriptor_, LOCK_EX);
    } while (result != 0 && errno == EINTR);
  }
  if (result != 0) error = {errno, std::generic_category()};
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace jitsoftmax::base
