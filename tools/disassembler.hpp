// Machine code as text (SASS), by a disassembler of the CUDA toolkit: a program of its own, which is started here.
#pragma once

#include <string>
#include <vector>

namespace jitsoftmax::tools {

// nvdisasm or cuobjdump: on PATH, else in CUDA_HOME, CUDA_PATH or /usr/local/cuda, read when it is made.
class Disassembler {
 public:
  // Throws Failure (incomplete) that says where it was looked for and what to install.
  Disassembler();

  // Of a cubin. Throws Failure (incomplete) with what the program said.
  [[nodiscard]] std::string operator()(const std::vector<char>& cubin) const;

 private:
  std::string program_;  // its path
};

}  // namespace jitsoftmax::tools
