#include "cuda/workspaces.hpp"

#include "cuda/capture.hpp"
#include "cuda/device.hpp"
#include "cuda/driver.hpp"
#include "cuda/stream.hpp"

namespace jitsoftmax::cuda {
namespace {

// Memory that went with its context is not there any more, and its address may be somebody else's by now.
void release(const Driver& usable, CUdeviceptr address, unsigned long long context) noexcept {
  CUcontext owner = nullptr;
  unsigned long long number = 0;
  if (usable.PointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address) != CUDA_SUCCESS || owner == nullptr)
    return;
  if (usable.CtxGetId(owner, &number) != CUDA_SUCCESS || number != context) return;
  if (usable.CtxPushCurrent(owner) != CUDA_SUCCESS) return;
  usable.MemFree(address);
  usable.CtxPopCurrent(&owner);
}

}  // namespace

Workspaces::~Workspaces() {
  const Driver* usable = driver_to_release_with();
  if (usable == nullptr) return;
  // Not CaptureRelaxed, which throws.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  usable->ThreadExchangeStreamCaptureMode(&mode);
  for (const auto& [stream, owned] : of_streams_) release(*usable, owned.address, owned.context);
  for (const Owned& owned : of_captures_) release(*usable, owned.address, owned.context);
  usable->ThreadExchangeStreamCaptureMode(&mode);
}

void* Workspaces::for_launch(CUstream stream) {
  const Driver& d = driver();
  unsigned long long context = 0;
  check(d.CtxGetId(nullptr, &context), "cuCtxGetId");
  if (is_capturing(stream)) {
    const Owned owned = allocate(context);
    const std::lock_guard lock(mutex_);
    of_captures_.push_back(owned);
    return reinterpret_cast<void*>(owned.address);
  }
  unsigned long long number = 0;
  check(d.StreamGetId(stream, &number), "cuStreamGetId");
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = of_streams_.try_emplace({context, number});
  if (is_new) {
    try {
      place->second = allocate(context);
    } catch (...) {
      of_streams_.erase(place);
      throw;
    }
  }
  return reinterpret_cast<void*>(place->second.address);
}

Workspaces::Owned Workspaces::allocate(unsigned long long context) const {
  const Driver& d = driver();
  const CaptureRelaxed relaxed(d);
  Owned owned{0, context};
  check(d.MemAlloc(&owned.address, bytes_), "cuMemAlloc");
  try {
    // On a stream of its own: a capture may forbid the use of the legacy default stream.
    const OwnedStream stream = make_stream();
    check(d.MemsetD8Async(owned.address, 0, bytes_, stream.get()), "cuMemsetD8Async");
    check(d.StreamSynchronize(stream.get()), "cuStreamSynchronize");
  } catch (...) {
    d.MemFree(owned.address);
    throw;
  }
  return owned;
}

}  // namespace jitsoftmax::cuda
