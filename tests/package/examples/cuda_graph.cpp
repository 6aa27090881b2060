// Inside a CUDA graph: captured once, replayed with new input. The kernel is prepared before the capture begins, since
// nothing can be loaded while it goes on.
#include <array>
#include <cstdio>
#include <jitsoftmax/jitsoftmax.hpp>

#include "cuda.hpp"

int main() {
  if (!gpu_is_here()) return skipped;
  std::array<float, 4> x{}, y{};
  const OwnedStream stream = make_stream();
  const DeviceFloats in = device_floats(x.size()), out = device_floats(y.size());

  jitsoftmax::Problem problem;
  problem.cols = x.size();
  jitsoftmax::Rows rows;
  rows.in = in.get();
  rows.out = out.get();
  rows.count = 1;

  jitsoftmax::Engine engine;
  const jitsoftmax::Kernel kernel = engine.prepare(problem);

  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  check(cudaMemcpyAsync(in.get(), x.data(), sizeof x, cudaMemcpyHostToDevice, stream.get()));
  kernel.launch(rows, stream.get());
  check(cudaMemcpyAsync(y.data(), out.get(), sizeof y, cudaMemcpyDeviceToHost, stream.get()));
  check(cudaStreamEndCapture(stream.get(), &graph));
  cudaGraphExec_t replay = nullptr;
  check(cudaGraphInstantiate(&replay, graph, 0));

  for (const float first : {0.0F, 1.0F, 2.0F}) {
    x[0] = first;
    check(cudaGraphLaunch(replay, stream.get()));
    check(cudaStreamSynchronize(stream.get()));
    std::printf("%.4f %.4f\n", static_cast<double>(y[0]), static_cast<double>(y[3]));
  }
  check(cudaGraphExecDestroy(replay));
  check(cudaGraphDestroy(graph));
}
