// InFlight: whether launches of some code are still on the device, told without waiting.
//
// Unloading code that runs is not allowed, and nothing in the driver says whether a kernel runs. So an
// event of the kernel's own follows each launch on its stream: one event a stream, recorded again each time.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "cuda/context_buffer.hpp"

namespace jitsoftmax::cuda {

class InFlight {
 public:
  InFlight() = default;
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  // After each launch, with its stream, in its context. What cannot be followed (a launch that a graph now
  // has, more streams than there is room for, an event that fails) is taken to run forever. Any thread; no
  // lock but for the first launch on a stream.
  void launched(CUstream stream) noexcept;

  // Something runs forever.
  [[nodiscard]] bool endless() const noexcept { return endless_.load(std::memory_order_acquire); }

  // All that was launched has ended. Any thread, no context needed, also while a stream is being captured.
  [[nodiscard]] bool idle() const noexcept;

 private:
  static constexpr std::size_t most_streams = 16;
  // By the driver's number of the stream, which is never given twice, as its handle is.
  struct Slot {
    std::atomic<std::uint64_t> stream{0};       // its number + 1
    CUevent event = nullptr;                    // set before `stream`
    std::unique_ptr<const ContextBuffer> mark;  // likewise: of the event's context, and there as long as that
  };

  [[nodiscard]] CUevent event_of(std::uint64_t stream) noexcept;

  std::array<Slot, most_streams> slots_;
  std::mutex adding_;
  std::atomic<bool> endless_{false};
};

}  // namespace jitsoftmax::cuda
