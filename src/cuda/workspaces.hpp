// Workspaces: device memory that a kernel's blocks tell each other things through, one for all launches of a stream.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace jitsoftmax::cuda {

// Launches that may run at the same time have one each. Those of one stream follow one another and share one. A
// captured launch runs whenever its graph does, and has its own, as long as this lives. Instances of one graph
// share theirs, as they share everything else that it reads and writes.
//
// Threads: all functions may be called at once.
class Workspaces {
 public:
  explicit Workspaces(std::size_t bytes) noexcept : bytes_(bytes) {}
  ~Workspaces();
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  // For a launch on the stream, in the current context. It was zero before its first launch; what later ones
  // find is what the one before left. The first call of a stream allocates. Throws out_of_memory, driver_error.
  [[nodiscard]] void* for_launch(CUstream stream);

 private:
  struct Owned {
    CUdeviceptr address;
    unsigned long long context;  // its number, which no later context gets
  };
  [[nodiscard]] Owned allocate(unsigned long long context) const;

  std::size_t bytes_;
  std::mutex mutex_;
  std::map<std::pair<unsigned long long, unsigned long long>, Owned> of_streams_;  // by numbers of context and stream
  std::vector<Owned> of_captures_;
};

}  // namespace jitsoftmax::cuda
