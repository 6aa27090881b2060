// CaptureRelaxed: what prepares a launch may be called while streams are being captured.
#pragma once

#include "cuda/driver.hpp"

namespace jitsoftmax::cuda {

// Loading code, allocating memory and asking for events can synchronize, which a capture on any thread forbids in its
// strict mode. This thread's calls touch no captured stream, so they are let through for a scope. Where that fails, the
// call that is not let through says so: destructors use it as well.
class CaptureRelaxed {
 public:
  explicit CaptureRelaxed(const Driver& usable) noexcept : driver_(usable) {
    driver_.ThreadExchangeStreamCaptureMode(&mode_);
  }
  ~CaptureRelaxed() { driver_.ThreadExchangeStreamCaptureMode(&mode_); }
  CaptureRelaxed(const CaptureRelaxed&) = delete;
  CaptureRelaxed& operator=(const CaptureRelaxed&) = delete;

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // the exchange leaves the thread's own here
};

}  // namespace jitsoftmax::cuda
