// LoadedKernel: one cubin handed to the driver, ready to launch in any context.
#pragma once

#include <cuda.h>

#include "jit/cubin.hpp"

namespace jitsoftmax::cuda {

// How a kernel is launched, in the driver's terms.
struct LaunchShape {
  unsigned grid = 1;         // blocks, in one dimension
  unsigned cluster = 1;      // blocks that form a thread block cluster
  unsigned block = 1;        // threads
  unsigned shared = 0;       // bytes of dynamic shared memory a block
  bool cooperative = false;  // all blocks are on the device at once, or the launch is an error
  // Clusters' blocks go where there is the least to do, instead of as far apart as each cluster's can be.
  bool balanced = false;
  // The kernel may begin before the one that precedes it on the stream has ended: it waits for that by itself. Cannot
  // be cooperative as well.
  bool programmatic = false;
};

// The driver's library handles are independent of contexts, so one LoadedKernel serves every
// context and device of the architecture. Unloads in its destructor unless the driver has already
// gone away with the process.
class LoadedKernel {
 public:
  // Loads and, for the current context, forces the code onto the device; allowed while any stream
  // is being captured. `shape` is that of every launch to come, but for its grid. Throws driver_error
  // (RefusedCode).
  LoadedKernel(const jit::Cubin& cubin, const LaunchShape& shape);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&& other) noexcept;
  LoadedKernel& operator=(LoadedKernel&& other) noexcept;
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  // Valid for cuLaunchKernel in whichever context is current.
  [[nodiscard]] CUfunction function() const noexcept { return reinterpret_cast<CUfunction>(kernel_); }

  // Blocks of this kernel that the device it was loaded on holds at once.
  [[nodiscard]] int resident_blocks() const noexcept { return resident_blocks_; }
  // The same of its clusters, whose blocks have to find room close to each other; blocks where it has none, and 0 if
  // the driver does not know.
  [[nodiscard]] int resident_clusters() const noexcept { return resident_clusters_; }

 private:
  // Owns the library from here on, so that a constructor that throws later unloads it.
  explicit LoadedKernel(CUlibrary library) noexcept : library_(library) {}

  CUlibrary library_ = nullptr;
  CUkernel kernel_ = nullptr;
  int resident_blocks_ = 0;
  int resident_clusters_ = 0;
};

// Orders the kernel on the stream. Throws driver_error for an error of this very launch.
void launch(CUfunction function, const LaunchShape& shape, CUstream stream, void* arguments);

}  // namespace jitsoftmax::cuda
