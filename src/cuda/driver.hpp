// libcuda, opened at run time: typed entry points and error checks.
#pragma once

#include <cuda.h>

#include <jitsoftmax/error.hpp>
#include <span>
#include <string>

namespace jitsoftmax::cuda {

// The entry points that the library uses, resolved by cuGetProcAddress at version 12000 so that
// each has the signature written here whatever the header or the driver is.
struct Driver {
  CUresult (*GetErrorName)(CUresult, const char**);
  CUresult (*GetErrorString)(CUresult, const char**);
  CUresult (*DriverGetVersion)(int*);
  CUresult (*DeviceGetCount)(int*);
  CUresult (*DeviceGet)(CUdevice*, int);
  CUresult (*DeviceGetName)(char*, int, CUdevice);
  CUresult (*DeviceGetAttribute)(int*, CUdevice_attribute, CUdevice);
  CUresult (*DevicePrimaryCtxRetain)(CUcontext*, CUdevice);
  CUresult (*DevicePrimaryCtxRelease)(CUdevice);
  CUresult (*CtxGetCurrent)(CUcontext*);
  CUresult (*CtxPushCurrent)(CUcontext);
  CUresult (*CtxPopCurrent)(CUcontext*);
  CUresult (*CtxGetDevice)(CUdevice*);
  CUresult (*CtxGetId)(CUcontext, unsigned long long*);
  CUresult (*CtxSynchronize)();
  CUresult (*LibraryLoadData)(CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                              unsigned);
  CUresult (*LibraryUnload)(CUlibrary);
  CUresult (*LibraryGetKernel)(CUkernel*, CUlibrary, const char*);
  CUresult (*KernelGetFunction)(CUfunction*, CUkernel);
  CUresult (*FuncLoad)(CUfunction);  // of 12.4, and null before
  CUresult (*KernelSetAttribute)(CUfunction_attribute, int, CUkernel, CUdevice);
  CUresult (*FuncGetAttribute)(int*, CUfunction_attribute, CUfunction);
  CUresult (*OccupancyMaxActiveBlocksPerMultiprocessor)(int*, CUfunction, int, size_t);
  CUresult (*OccupancyMaxActiveClusters)(int*, CUfunction, const CUlaunchConfig*);
  CUresult (*ThreadExchangeStreamCaptureMode)(CUstreamCaptureMode*);
  CUresult (*StreamIsCapturing)(CUstream, CUstreamCaptureStatus*);
  CUresult (*LaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                           void**, void**);
  CUresult (*LaunchKernelEx)(const CUlaunchConfig*, CUfunction, void**, void**);
  CUresult (*StreamCreate)(CUstream*, unsigned);
  CUresult (*StreamDestroy)(CUstream);
  CUresult (*StreamGetId)(CUstream, unsigned long long*);
  CUresult (*StreamSynchronize)(CUstream);
  CUresult (*StreamBeginCapture)(CUstream, CUstreamCaptureMode);
  CUresult (*StreamEndCapture)(CUstream, CUgraph*);
  CUresult (*GraphInstantiateWithFlags)(CUgraphExec*, CUgraph, unsigned long long);
  CUresult (*GraphLaunch)(CUgraphExec, CUstream);
  CUresult (*GraphExecDestroy)(CUgraphExec);
  CUresult (*GraphDestroy)(CUgraph);
  CUresult (*EventCreate)(CUevent*, unsigned);
  CUresult (*EventDestroy)(CUevent);
  CUresult (*EventRecord)(CUevent, CUstream);
  CUresult (*EventQuery)(CUevent);
  CUresult (*EventSynchronize)(CUevent);
  CUresult (*EventElapsedTime)(float*, CUevent, CUevent);
  CUresult (*MemAlloc)(CUdeviceptr*, size_t);
  CUresult (*MemFree)(CUdeviceptr);
  CUresult (*MemGetInfo)(size_t*, size_t*);
  CUresult (*MemcpyHtoD)(CUdeviceptr, const void*, size_t);
  CUresult (*MemcpyDtoH)(void*, CUdeviceptr, size_t);
  CUresult (*MemcpyDtoDAsync)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
  CUresult (*MemsetD8)(CUdeviceptr, unsigned char, size_t);
  CUresult (*MemsetD8Async)(CUdeviceptr, unsigned char, size_t, CUstream);
  CUresult (*PointerGetAttribute)(void*, CUpointer_attribute, CUdeviceptr);
};

// Opens libcuda and calls cuInit on first use; one atomic load after that. Throws no_driver, each
// time it is called where there is none, with the library, the names tried and what to do; and
// driver_error in a child that was forked after CUDA was in use, where it cannot work. Safe from
// several threads at once.
[[nodiscard]] const Driver& driver();

// The same from the first of these files that can be opened, and for nobody else: for tests. Throws
// no_driver.
[[nodiscard]] Driver open_driver(std::span<const std::string> names);

// The file of the libcuda that this process has; empty where there is none.
[[nodiscard]] std::string driver_path();

// For destructors: the driver if it is in use and may still be called; null before its first use,
// after a fork, and once the process has begun to exit. What it owns is then left to the system.
[[nodiscard]] const Driver* driver_to_release_with() noexcept;

// The driver does not take code: it is damaged, or made for another GPU or by a newer compiler.
class RefusedCode final : public Error {
 public:
  explicit RefusedCode(const std::string& message) : Error(ErrorCode::driver_error, message) {}
};

// Throws driver_error (out_of_memory, no_context where the result says so; RefusedCode) with the call, the
// error's name and its description. The text is built only when it throws.
void check(CUresult result, const char* call);

// "CUDA_ERROR_INVALID_VALUE: invalid argument"
[[nodiscard]] std::string describe(CUresult result);

}  // namespace jitsoftmax::cuda
