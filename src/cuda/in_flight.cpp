#include "cuda/in_flight.hpp"

#include "cuda/capture.hpp"
#include "cuda/driver.hpp"

namespace jitsoftmax::cuda {

InFlight::~InFlight() {
  const Driver* usable = driver_to_release_with();
  if (usable == nullptr) return;
  for (Slot& slot : slots_)
    if (slot.event != nullptr && slot.mark->exists()) usable->EventDestroy(slot.event);
}

void InFlight::launched(CUstream stream) noexcept {
  const Driver* usable = driver_to_release_with();
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  unsigned long long number = 0;
  if (usable == nullptr || usable->StreamIsCapturing(stream, &capture) != CUDA_SUCCESS ||
      capture != CU_STREAM_CAPTURE_STATUS_NONE || usable->StreamGetId(stream, &number) != CUDA_SUCCESS) {
    endless_.store(true, std::memory_order_release);
    return;
  }
  CUevent event = event_of(number + 1);
  if (event == nullptr || usable->EventRecord(event, stream) != CUDA_SUCCESS)
    endless_.store(true, std::memory_order_release);
}

CUevent InFlight::event_of(std::uint64_t stream) noexcept {
  for (const Slot& slot : slots_)
    if (slot.stream.load(std::memory_order_acquire) == stream) return slot.event;
  const std::lock_guard lock(adding_);
  for (Slot& slot : slots_) {
    const std::uint64_t present = slot.stream.load(std::memory_order_relaxed);
    if (present == stream) return slot.event;
    if (present != 0) continue;
    const Driver* usable = driver_to_release_with();
    if (usable == nullptr) return nullptr;
    const CaptureRelaxed relaxed(*usable);
    try {
      slot.mark = std::make_unique<const ContextBuffer>(1);
    } catch (...) {
      return nullptr;
    }
    if (usable->EventCreate(&slot.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
    slot.stream.store(stream, std::memory_order_release);
    return slot.event;
  }
  return nullptr;
}

bool InFlight::idle() const noexcept {
  const Driver* usable = driver_to_release_with();
  if (endless() || usable == nullptr) return false;
  const CaptureRelaxed relaxed(*usable);
  for (const Slot& slot : slots_) {
    if (slot.stream.load(std::memory_order_acquire) == 0) break;
    // Where the context is gone, so is all that ran there, and the event.
    if (slot.mark->exists() && usable->EventQuery(slot.event) == CUDA_ERROR_NOT_READY) return false;
  }
  return true;
}

}  // namespace jitsoftmax::cuda
