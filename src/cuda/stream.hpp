// Streams, events and graphs of our own, for measuring. The context that one was made in has to be
// current wherever it is used or destroyed.
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>

#include "cuda/driver.hpp"

namespace jitsoftmax::cuda {

// unique_ptr over a driver handle (a pointer to an incomplete type). Errors of a destroy call have
// nowhere to go and are dropped.
template <class Handle, CUresult (*Driver::*destroy)(Handle)>
struct Destroy {
  using pointer = Handle;
  void operator()(Handle handle) const noexcept { (driver().*destroy)(handle); }
};
using OwnedStream = std::unique_ptr<CUstream_st, Destroy<CUstream, &Driver::StreamDestroy>>;
using OwnedEvent = std::unique_ptr<CUevent_st, Destroy<CUevent, &Driver::EventDestroy>>;
using OwnedGraph = std::unique_ptr<CUgraph_st, Destroy<CUgraph, &Driver::GraphDestroy>>;
using OwnedGraphExec = std::unique_ptr<CUgraphExec_st, Destroy<CUgraphExec, &Driver::GraphExecDestroy>>;

// A stream that does not synchronize with the legacy default stream.
[[nodiscard]] inline OwnedStream make_stream() {
  CUstream stream = nullptr;
  check(driver().StreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return OwnedStream(stream);
}

[[nodiscard]] inline OwnedEvent make_event() {
  CUevent event = nullptr;
  check(driver().EventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  return OwnedEvent(event);
}

// What `enqueue` puts on the stream, as a graph that is ready to launch.
[[nodiscard]] inline OwnedGraphExec capture(CUstream stream, const std::function<void()>& enqueue) {
  check(driver().StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  CUgraph recorded = nullptr;
  try {
    enqueue();
  } catch (...) {
    driver().StreamEndCapture(stream, &recorded);
    const OwnedGraph dropped(recorded);
    throw;
  }
  check(driver().StreamEndCapture(stream, &recorded), "cuStreamEndCapture");
  const OwnedGraph graph(recorded);
  CUgraphExec exec = nullptr;
  check(driver().GraphInstantiate(&exec, graph.get(), 0), "cuGraphInstantiate");
  return OwnedGraphExec(exec);
}

}  // namespace jitsoftmax::cuda
