// Entry points of the driver that only tests need: contexts that the library does not make.
#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>

#include "base/shared_library.hpp"
#include "cuda/driver.hpp"

namespace jitsoftmax::testing {

struct DriverCalls {
  CUresult (*CtxCreate)(CUcontext*, unsigned, CUdevice);
  CUresult (*CtxDestroy)(CUcontext);
  CUresult (*CtxSetCurrent)(CUcontext);
  CUresult (*DevicePrimaryCtxReset)(CUdevice);
  CUresult (*DevicePrimaryCtxGetState)(CUdevice, unsigned*, int*);

  DriverCalls() {
    (void)cuda::driver();
    library_ = base::SharedLibrary::already_loaded("libcuda.so.1");
    const auto get = [this](auto& function, const char* name) {
      if (!library_.resolve(function, name)) throw std::runtime_error(std::string("no ") + name);
    };
    get(CtxCreate, "cuCtxCreate_v2");
    get(CtxDestroy, "cuCtxDestroy_v2");
    get(CtxSetCurrent, "cuCtxSetCurrent");
    get(DevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2");
    get(DevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState");
  }

 private:
  base::SharedLibrary library_;
};

}  // namespace jitsoftmax::testing
