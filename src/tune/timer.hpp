// Timing on the device: launches captured in a graph over rotated buffers, several contestants
// interleaved in rounds. Times are only comparable within one call.
#pragma once

#include <cuda.h>

#include <functional>
#include <vector>

#include "tune/timing.hpp"

namespace jitsoftmax::tune {

// Enqueues one launch that works on buffer set `set` (0, 1, ...).
using Enqueue = std::function<void(int set, CUstream stream)>;

struct TimerOptions {
  int sets = 1;           // buffer sets to rotate over; enough that the L2 serves none of them when cold
  int rounds = 5;         // of interleaved measurements
  double seconds = 2e-3;  // that one measurement lasts at least
};

// One Timing a contestant. Everybody runs once before the clock does. Throws Error.
[[nodiscard]] std::vector<Timing> time_interleaved(const std::vector<Enqueue>& contestants,
                                                   const TimerOptions& options);

}  // namespace jitsoftmax::tune
