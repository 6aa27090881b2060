// ContextBuffer: device memory of a context that somebody else may reset or destroy, and that tells.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace jitsoftmax::cuda {

// What else was made in its context is there as long as it is: a handle whose context is gone must not be given to
// the driver any more, and the driver cannot be asked about one.
class ContextBuffer {
 public:
  // In the current context; allowed while any stream is being captured. Throws out_of_memory, driver_error.
  explicit ContextBuffer(std::size_t bytes);
  // Frees it, if it is still there, in its context.
  ~ContextBuffer();
  ContextBuffer(const ContextBuffer&) = delete;
  ContextBuffer& operator=(const ContextBuffer&) = delete;

  [[nodiscard]] CUdeviceptr address() const noexcept { return address_; }
  // False once its context was reset or destroyed, even where the address is in use again. Needs no context.
  [[nodiscard]] bool exists() const noexcept;

 private:
  CUdeviceptr address_ = 0;
  CUcontext context_ = nullptr;
  unsigned long long number_ = 0;  // the driver's, of this allocation: never given twice
};

}  // namespace jitsoftmax::cuda
