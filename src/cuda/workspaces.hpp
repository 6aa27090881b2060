// Workspaces: device memory that a kernel's blocks tell each other things through, one for all launches of a stream.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/context_buffer.hpp"

namespace jitsoftmax::cuda {

// Launches that may run at the same time have one each. Those of one stream follow one another and share one. A
// captured launch runs whenever its graph does, and has its own, as long as this lives. Instances of one graph
// share theirs, as they share everything else that it reads and writes.
//
// Threads: all functions may be called at once.
class Workspaces {
 public:
  explicit Workspaces(std::size_t bytes) noexcept : bytes_(bytes) {}
  // For a launch on the stream, in the current context. It was zero before its first launch; what later ones
  // find is what the one before left. The first call of a stream allocates. Throws out_of_memory, driver_error.
  [[nodiscard]] void* for_launch(CUstream stream);

 private:
  std::size_t bytes_;
  std::mutex mutex_;
  // By numbers of context and stream, which the driver gives once.
  std::map<std::pair<unsigned long long, unsigned long long>, std::unique_ptr<ContextBuffer>> of_streams_;
  std::vector<std::unique_ptr<ContextBuffer>> of_captures_;
};

}  // namespace jitsoftmax::cuda
