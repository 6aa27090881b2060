// ClockMeter: the clocks of a GPU as they are now, from NVML, which comes with the driver.
#pragma once

#include <cuda.h>

#include <optional>

#include "base/shared_library.hpp"

namespace jitsoftmax::tools {

struct Clocks {
  unsigned multiprocessors_mhz = 0;
  unsigned memory_mhz = 0;
};

class ClockMeter {
 public:
  explicit ClockMeter(CUdevice device);

  // Nothing where NVML cannot be opened, or does not tell.
  [[nodiscard]] std::optional<Clocks> read() const;

 private:
  using ClockInfo = int(void* device, int kind, unsigned* mhz);
  base::SharedLibrary library_;
  ClockInfo* clock_info_ = nullptr;  // null: there is no meter
  void* device_ = nullptr;           // NVML's handle, which nobody has to release
};

}  // namespace jitsoftmax::tools
