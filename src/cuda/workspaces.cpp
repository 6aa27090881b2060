#include "cuda/workspaces.hpp"

#include <utility>

#include "cuda/capture.hpp"
#include "cuda/device.hpp"
#include "cuda/driver.hpp"
#include "cuda/stream.hpp"

namespace jitsoftmax::cuda {
namespace {

std::unique_ptr<ContextBuffer> zeroed(std::size_t bytes) {
  auto buffer = std::make_unique<ContextBuffer>(bytes);
  const Driver& d = driver();
  const CaptureRelaxed relaxed(d);
  // On a stream of its own: a capture may forbid the use of the legacy default stream.
  const OwnedStream stream = make_stream();
  check(d.MemsetD8Async(buffer->address(), 0, bytes, stream.get()), "cuMemsetD8Async");
  check(d.StreamSynchronize(stream.get()), "cuStreamSynchronize");
  return buffer;
}

}  // namespace

void* Workspaces::for_launch(CUstream stream) {
  const Driver& d = driver();
  if (is_capturing(stream)) {
    auto buffer = zeroed(bytes_);
    const std::lock_guard lock(mutex_);
    of_captures_.push_back(std::move(buffer));
    return reinterpret_cast<void*>(of_captures_.back()->address());
  }
  unsigned long long context = 0;
  unsigned long long number = 0;
  check(d.CtxGetId(nullptr, &context), "cuCtxGetId");
  check(d.StreamGetId(stream, &number), "cuStreamGetId");
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ContextBuffer>& buffer = of_streams_[{context, number}];
  if (buffer == nullptr || !buffer->exists()) buffer = zeroed(bytes_);
  return reinterpret_cast<void*>(buffer->address());
}

}  // namespace jitsoftmax::cuda
