#include "cuda/context_buffer.hpp"

#include "cuda/capture.hpp"
#include "cuda/driver.hpp"

namespace jitsoftmax::cuda {
namespace {

bool number_of(const Driver& driver, CUdeviceptr address, unsigned long long& number) noexcept {
  return driver.PointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_BUFFER_ID, address) == CUDA_SUCCESS;
}

}  // namespace

ContextBuffer::ContextBuffer(std::size_t bytes) {
  const Driver& d = driver();
  const CaptureRelaxed relaxed(d);
  check(d.CtxGetCurrent(&context_), "cuCtxGetCurrent");
  check(d.MemAlloc(&address_, bytes), "cuMemAlloc");
  if (!number_of(d, address_, number_)) {
    d.MemFree(address_);
    check(CUDA_ERROR_UNKNOWN, "cuPointerGetAttribute");
  }
}

bool ContextBuffer::exists() const noexcept {
  const Driver* usable = driver_to_release_with();
  unsigned long long number = 0;
  return usable != nullptr && number_of(*usable, address_, number) && number == number_;
}

ContextBuffer::~ContextBuffer() {
  if (!exists()) return;
  const Driver* usable = driver_to_release_with();
  if (usable == nullptr || usable->CtxPushCurrent(context_) != CUDA_SUCCESS) return;
  {
    const CaptureRelaxed relaxed(*usable);
    usable->MemFree(address_);
  }
  CUcontext popped = nullptr;
  usable->CtxPopCurrent(&popped);
}

}  // namespace jitsoftmax::cuda
