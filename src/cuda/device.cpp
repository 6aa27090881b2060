#include "cuda/device.hpp"

#include <iomanip>
#include <jitsoftmax/error.hpp>
#include <sstream>

#include "cuda/driver.hpp"

namespace jitsoftmax::cuda {
namespace {

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().DeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

}  // namespace

int device_count() {
  int count = 0;
  check(driver().DeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

CUdevice device_of(int ordinal) {
  const int count = device_count();
  if (ordinal < 0 || ordinal >= count)
    throw Error(ErrorCode::invalid_argument, "there is no CUDA device " + std::to_string(ordinal) +
                                                 ": this process sees " + std::to_string(count) +
                                                 ", numbered from 0 (CUDA_VISIBLE_DEVICES chooses which).");
  CUdevice device = 0;
  check(driver().DeviceGet(&device, ordinal), "cuDeviceGet");
  return device;
}

Arch architecture(CUdevice device) {
  return {attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
          attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)};
}

int multiprocessors(CUdevice device) { return attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }

std::size_t l2_bytes(CUdevice device) {
  return static_cast<std::size_t>(attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
}

int most_threads(CUdevice device) { return attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK); }

int most_registers(CUdevice device) { return attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK); }

int most_shared_bytes(CUdevice device) {
  return attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
}

int clock_mhz(CUdevice device) { return attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000; }

int memory_clock_mhz(CUdevice device) { return attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1000; }

int memory_bus_bits(CUdevice device) { return attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH); }

std::string pci_address(CUdevice device) {
  std::ostringstream text;
  const auto field = [&](CUdevice_attribute which, int digits) {
    text << std::hex << std::setfill('0') << std::setw(digits) << attribute(device, which);
  };
  field(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 8);
  text << ':';
  field(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 2);
  text << ':';
  field(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 2);
  text << ".0";
  return text.str();
}

std::string device_name(CUdevice device) {
  char name[256] = {};
  check(driver().DeviceGetName(name, sizeof name, device), "cuDeviceGetName");
  return name;
}

CUdevice current_device() {
  CUdevice device = 0;
  const CUresult result = driver().CtxGetDevice(&device);
  if (result == CUDA_ERROR_INVALID_CONTEXT)
    throw Error(ErrorCode::no_context,
                "Device::current uses the CUDA context that is current on the calling thread, and there is none. Make "
                "one current first (cudaSetDevice(n), cuCtxSetCurrent; every new thread starts without one under the "
                "driver API), or use Device::cuda(n).");
  check(result, "cuCtxGetDevice");
  return device;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  check(driver().CtxGetCurrent(&context), "cuCtxGetCurrent");
  return context;
}

bool is_capturing(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver().StreamIsCapturing(stream, &status);
  // The legacy default stream while some other stream's capture forbids its use.
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
  check(result, "cuStreamIsCapturing");
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

PrimaryContext::PrimaryContext(int ordinal) : device_(device_of(ordinal)) {
  check(driver().DevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

PrimaryContext::~PrimaryContext() {
  if (const Driver* usable = driver_to_release_with()) usable->DevicePrimaryCtxRelease(device_);
}

ContextScope::ContextScope(CUcontext context) {
  if (context == nullptr) return;
  if (current_context() == context) return;
  check(driver().CtxPushCurrent(context), "cuCtxPushCurrent");
  pushed_ = true;
}

ContextScope::~ContextScope() {
  if (!pushed_) return;
  CUcontext popped = nullptr;
  if (const Driver* usable = driver_to_release_with()) usable->CtxPopCurrent(&popped);
}

}  // namespace jitsoftmax::cuda
