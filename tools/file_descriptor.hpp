// FileDescriptor: owns an open file.
#pragma once

#include <unistd.h>

#include <utility>

namespace jitsoftmax::tools {

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }

  // False: the system could not keep what was written; errno says why.
  bool close() noexcept { return !is_open() || ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

}  // namespace jitsoftmax::tools
