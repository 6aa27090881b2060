// OutputFile: a file that is there complete, or not at all.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace jitsoftmax::tools {

class OutputFile {
 public:
  // Creates nothing yet, but throws Failure where the file could not be written: no such
  // directory, not writable, something that is no regular file. A symbolic link is followed.
  explicit OutputFile(const std::string& path);

  // Writes the pieces to an exclusive temporary file beside the target, which it then replaces.
  // Whatever goes wrong, the target is untouched and no temporary is left. Throws Failure, or
  // Interrupted (interrupt.hpp).
  void write(std::initializer_list<std::span<const std::byte>> pieces) const;

 private:
  std::string path_;      // as the caller wrote it, for messages
  std::string target_;    // behind symbolic links
  unsigned mode_ = 0666;  // permissions of the file that is replaced, or those of a new one
  bool exists_ = false;
};

}  // namespace jitsoftmax::tools
