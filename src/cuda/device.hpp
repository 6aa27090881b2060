// The GPU that a call works on.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <jitsoftmax/engine.hpp>
#include <string>

namespace jitsoftmax::cuda {

// The architecture of a device, as cubins are made for it.
[[nodiscard]] Arch architecture(CUdevice device);
[[nodiscard]] int multiprocessors(CUdevice device);
[[nodiscard]] std::string device_name(CUdevice device);
[[nodiscard]] std::size_t l2_bytes(CUdevice device);
// Of a block.
[[nodiscard]] int most_threads(CUdevice device);
[[nodiscard]] int most_registers(CUdevice device);
[[nodiscard]] int most_shared_bytes(CUdevice device);  // with the attribute that a LoadedKernel sets
[[nodiscard]] int clock_mhz(CUdevice device);          // of the multiprocessors, at most
[[nodiscard]] int memory_clock_mhz(CUdevice device);   // at most
[[nodiscard]] int memory_bus_bits(CUdevice device);
[[nodiscard]] std::string pci_address(CUdevice device);  // "00000000:1b:00.0"

// That this process sees.
[[nodiscard]] int device_count();
// Throws invalid_argument where there is no such device.
[[nodiscard]] CUdevice device_of(int ordinal);

// The device of the calling thread's current context; throws no_context.
[[nodiscard]] CUdevice current_device();

// The calling thread's; null if it has none.
[[nodiscard]] CUcontext current_context();

// Whether the stream (null: the legacy default stream) is part of a capture, or cannot be used
// because another stream's capture forbids it.
[[nodiscard]] bool is_capturing(CUstream stream);

// Retains the primary context of a device for as long as it lives.
class PrimaryContext {
 public:
  explicit PrimaryContext(int ordinal);  // throws no_driver, invalid_argument (no such device)
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  [[nodiscard]] CUdevice device() const noexcept { return device_; }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// Makes a context current on this thread for a scope, if it is not; null changes nothing.
class ContextScope {
 public:
  explicit ContextScope(CUcontext context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  bool pushed_ = false;
};

}  // namespace jitsoftmax::cuda
