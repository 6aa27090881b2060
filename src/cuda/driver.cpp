#include "cuda/driver.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <jitsoftmax/error.hpp>
#include <mutex>
#include <type_traits>
#include <vector>

#include "base/shared_library.hpp"

namespace jitsoftmax::cuda {
namespace {

constexpr const char* library_names[] = {"libcuda.so.1", "libcuda.so"};

constexpr const char* advice =
    "\nInstall NVIDIA's driver, of CUDA 12 (525) or newer; in a container, pass the GPU in (--gpus all, or the device "
    "plugin). Device::host(), or JITSOFTMAX_DEVICE=host, computes on the CPU, and warming a cache needs no driver.";

Error no_driver(const std::string& what) {
  return Error(ErrorCode::no_driver, "a GPU is needed, but " + what + advice);
}

// Every entry as it was in 12.0, whatever the driver is, with the legacy meaning of the null stream.
class Resolver {
 public:
  using GetProcAddress = decltype(cuGetProcAddress_v2);

  Resolver(GetProcAddress* get, std::string path) : get_(get), path_(std::move(path)) {}

  template <typename Function>
  void operator()(Function*& function, const char* name) const {
    if (!optional(function, name, 12000)) throw no_driver(path_ + " has no " + name + " of CUDA 12.0: it is too old.");
  }

  template <typename Function>
  bool optional(Function*& function, const char* name, int version) const {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult result = get_(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
    if (result != CUDA_SUCCESS || status != CU_GET_PROC_ADDRESS_SUCCESS) address = nullptr;
    function = reinterpret_cast<Function*>(address);
    return function != nullptr;
  }

 private:
  GetProcAddress* get_;
  std::string path_;
};

Driver resolve(const Resolver& get) {
  Driver d{};
  get(d.GetErrorName, "cuGetErrorName");
  get(d.GetErrorString, "cuGetErrorString");
  get(d.DriverGetVersion, "cuDriverGetVersion");
  get(d.DeviceGetCount, "cuDeviceGetCount");
  get(d.DeviceGet, "cuDeviceGet");
  get(d.DeviceGetName, "cuDeviceGetName");
  get(d.DeviceGetAttribute, "cuDeviceGetAttribute");
  get(d.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  get(d.DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease");
  get(d.CtxGetCurrent, "cuCtxGetCurrent");
  get(d.CtxPushCurrent, "cuCtxPushCurrent");
  get(d.CtxPopCurrent, "cuCtxPopCurrent");
  get(d.CtxGetDevice, "cuCtxGetDevice");
  get(d.CtxGetId, "cuCtxGetId");
  get(d.CtxSynchronize, "cuCtxSynchronize");
  get(d.LibraryLoadData, "cuLibraryLoadData");
  get(d.LibraryUnload, "cuLibraryUnload");
  get(d.LibraryGetKernel, "cuLibraryGetKernel");
  get(d.KernelGetFunction, "cuKernelGetFunction");
  get.optional(d.FuncLoad, "cuFuncLoad", 12040);
  get(d.KernelSetAttribute, "cuKernelSetAttribute");
  get(d.FuncGetAttribute, "cuFuncGetAttribute");
  get(d.OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  get(d.OccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters");
  get(d.ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  get(d.StreamIsCapturing, "cuStreamIsCapturing");
  get(d.LaunchKernel, "cuLaunchKernel");
  get(d.LaunchKernelEx, "cuLaunchKernelEx");
  get(d.StreamCreate, "cuStreamCreate");
  get(d.StreamDestroy, "cuStreamDestroy");
  get(d.StreamGetId, "cuStreamGetId");
  get(d.StreamSynchronize, "cuStreamSynchronize");
  get(d.StreamBeginCapture, "cuStreamBeginCapture");
  get(d.StreamEndCapture, "cuStreamEndCapture");
  get(d.GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  get(d.GraphLaunch, "cuGraphLaunch");
  get(d.GraphExecDestroy, "cuGraphExecDestroy");
  get(d.GraphDestroy, "cuGraphDestroy");
  get(d.EventCreate, "cuEventCreate");
  get(d.EventDestroy, "cuEventDestroy");
  get(d.EventRecord, "cuEventRecord");
  get(d.EventQuery, "cuEventQuery");
  get(d.EventSynchronize, "cuEventSynchronize");
  get(d.EventElapsedTime, "cuEventElapsedTime");
  get(d.MemAlloc, "cuMemAlloc");
  get(d.MemFree, "cuMemFree");
  get(d.MemGetInfo, "cuMemGetInfo");
  get(d.MemcpyHtoD, "cuMemcpyHtoD");
  get(d.MemcpyDtoH, "cuMemcpyDtoH");
  get(d.MemcpyDtoDAsync, "cuMemcpyDtoDAsync");
  get(d.MemsetD8, "cuMemsetD8");
  get(d.MemsetD8Async, "cuMemsetD8Async");
  get(d.PointerGetAttribute, "cuPointerGetAttribute");
  return d;
}

// Why cuInit failed. The stub library of a toolkit has cuGetErrorName, but leaves the name null.
std::string reason_of(CUresult result, const std::string& path, const base::SharedLibrary& library) {
  if (result == CUDA_ERROR_STUB_LIBRARY)
    return path + " is the stub that comes with a CUDA toolkit to link against, not a driver.";
  const char* name = nullptr;
  if (decltype(cuGetErrorName)* get_name = nullptr; library.resolve(get_name, "cuGetErrorName"))
    get_name(result, &name);
  return "cuInit of " + path +
         " fails: " + (name != nullptr ? std::string(name) : "error " + std::to_string(static_cast<int>(result))) +
         (result == CUDA_ERROR_NO_DEVICE ? ", it finds no GPU (or CUDA_VISIBLE_DEVICES hides them)." : ".");
}

// What this process knows of the driver. Has no destructor to run, since static engines of the host
// program may die later than any object of ours.
struct Process {
  std::mutex opening;
  Driver driver{};  // set once, before `usable`
  std::atomic<const Driver*> usable{nullptr};
  std::atomic<bool> forked{false};
  std::atomic<bool> exiting{false};
};
static_assert(std::is_trivially_destructible_v<Process>);
constinit Process process;

// The driver does not survive a fork. Runs in the child: atomics only.
void in_forked_child() noexcept {
  if (process.usable.exchange(nullptr) != nullptr) process.forked = true;
}

// Runs before the driver's own exit handlers, which cuInit registered earlier.
void at_exit() noexcept { process.exiting = true; }

}  // namespace

Driver open_driver(std::span<const std::string> names) {
  std::string tried;
  for (const std::string& name : names) {
    std::string error;
    const base::SharedLibrary library = base::SharedLibrary::open(name, error);
    if (!library) {
      tried += "\n  " + error;
      continue;
    }
    const std::string path = library.path().empty() ? name : library.path();
    decltype(cuInit)* init = nullptr;
    Resolver::GetProcAddress* get = nullptr;
    if (!library.resolve(init, "cuInit")) throw no_driver(path + " is not a CUDA driver: it has no cuInit.");
    if (const CUresult result = init(0); result != CUDA_SUCCESS) throw no_driver(reason_of(result, path, library));
    if (!library.resolve(get, "cuGetProcAddress_v2"))
      throw no_driver(path + " has no cuGetProcAddress of CUDA 12.0: it is too old.");
    return resolve(Resolver(get, path));
  }
  throw no_driver("the CUDA driver cannot be opened. Tried:" + tried);
}

const Driver& driver() {
  if (const Driver* usable = process.usable.load(std::memory_order_acquire)) return *usable;

  const std::lock_guard lock(process.opening);
  if (const Driver* usable = process.usable.load(std::memory_order_acquire)) return *usable;
  if (process.forked)
    throw Error(
        ErrorCode::driver_error,
        "this process was forked after CUDA was in use, and CUDA cannot be used in such a child. Fork before the "
        "first use of a GPU, or start a new program (exec; the \"spawn\" method of Python's multiprocessing).");

  const std::vector<std::string> names(std::begin(library_names), std::end(library_names));
  process.driver = open_driver(names);
  std::atexit(at_exit);
  ::pthread_atfork(nullptr, nullptr, in_forked_child);
  process.usable.store(&process.driver, std::memory_order_release);
  return process.driver;
}

std::string driver_path() {
  for (const char* name : library_names)
    if (const base::SharedLibrary library = base::SharedLibrary::already_loaded(name)) return library.path();
  return {};
}

const Driver* driver_to_release_with() noexcept {
  return process.exiting ? nullptr : process.usable.load(std::memory_order_acquire);
}

std::string describe(CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (const Driver* usable = process.usable.load(std::memory_order_acquire)) {
    usable->GetErrorName(result, &name);
    usable->GetErrorString(result, &text);
  }
  std::string description = name != nullptr ? name : "CUDA error " + std::to_string(static_cast<int>(result));
  if (text != nullptr) description += std::string(": ") + text;
  return description;
}

namespace {

ErrorCode code_of(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ErrorCode::out_of_memory;
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return ErrorCode::no_context;
    default:
      return ErrorCode::driver_error;
  }
}

bool is_about_code(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NOT_FOUND:  // it has no kernel of that name
      return true;
    default:
      return false;
  }
}

const char* advice_for(CUresult result) noexcept {
  if (is_about_code(result))
    return ". The driver may be older than the NVRTC that made the kernel: update it, or let Options::nvrtc name an "
           "NVRTC of the driver's CUDA version.";
  switch (result) {
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return ". Make a live context current on this thread (cudaSetDevice, cuCtxSetCurrent), or use Device::cuda(n).";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
      return ". This is of an earlier kernel or copy in the context, which cannot be used any more.";
    default:
      return "";
  }
}

}  // namespace

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const std::string message = std::string(call) + ": " + describe(result) + advice_for(result);
  if (is_about_code(result)) throw RefusedCode(message);
  throw Error(code_of(result), message);
}

}  // namespace jitsoftmax::cuda
