#include "clock_meter.hpp"

#include <spdlog/fmt/fmt.h>

#include <string>

#include "cuda/device.hpp"

namespace jitsoftmax::tools {
namespace {

// Of nvml.h, which a toolkit need not have.
constexpr int success = 0;
constexpr int clock_of_multiprocessors = 1;
constexpr int clock_of_memory = 2;

}  // namespace

ClockMeter::ClockMeter(CUdevice device) {
  std::string error;
  library_ = base::SharedLibrary::open("libnvidia-ml.so.1", error);
  int (*init)() = nullptr;
  int (*find)(const char*, void**) = nullptr;
  ClockInfo* clock_info = nullptr;
  if (!library_ || !library_.resolve(init, "nvmlInit_v2") ||
      !library_.resolve(find, "nvmlDeviceGetHandleByPciBusId_v2") ||
      !library_.resolve(clock_info, "nvmlDeviceGetClockInfo")) {
    return;
  }
  // It numbers devices otherwise than CUDA.
  if (init() == success && find(cuda::pci_address(device).c_str(), &device_) == success) clock_info_ = clock_info;
}

std::optional<Clocks> ClockMeter::read() const {
  Clocks clocks;
  if (clock_info_ == nullptr ||
      clock_info_(device_, clock_of_multiprocessors, &clocks.multiprocessors_mhz) != success ||
      clock_info_(device_, clock_of_memory, &clocks.memory_mhz) != success) {
    return std::nullopt;
  }
  return clocks;
}

}  // namespace jitsoftmax::tools
