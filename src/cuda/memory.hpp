// DeviceBuffer: owns memory of the device whose context is current.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "cuda/driver.hpp"

namespace jitsoftmax::cuda {

// The context that it was made in has to be current in every call, the destructor's too.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) {
    if (bytes != 0) check(driver().MemAlloc(&address_, bytes), "cuMemAlloc");
  }
  ~DeviceBuffer() {
    if (address_ != 0) driver().MemFree(address_);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  // As kernels take it.
  [[nodiscard]] void* get() const noexcept { return reinterpret_cast<void*>(address_); }

  // Both return when the bytes are there, and come after everything on the legacy default stream.
  void upload(const void* from, std::size_t bytes) {
    check(driver().MemcpyHtoD(address_, from, bytes), "cuMemcpyHtoD");
  }
  void download(void* to, std::size_t bytes, std::size_t offset = 0) const {
    check(driver().MemcpyDtoH(to, address_ + offset, bytes), "cuMemcpyDtoH");
  }

 private:
  CUdeviceptr address_ = 0;
};

[[nodiscard]] inline std::size_t free_device_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(driver().MemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

}  // namespace jitsoftmax::cuda
