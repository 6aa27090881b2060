// With the CUDA runtime, on a stream of one's own: the stream orders copies and kernel, the host waits once.
#include <cstdio>
#include <jitsoftmax/jitsoftmax.hpp>
#include <vector>

#include "cuda.hpp"

int main() {
  if (!gpu_is_here()) return skipped;
  constexpr std::size_t count = 1024;
  constexpr std::size_t cols = 4096;
  std::vector<float> x(count * cols, 1.0F), y(x.size());
  const OwnedStream stream = make_stream();
  const DeviceFloats in = device_floats(x.size()), out = device_floats(x.size());

  jitsoftmax::Problem problem;
  problem.cols = cols;
  jitsoftmax::Rows rows;
  rows.in = in.get();
  rows.out = out.get();
  rows.count = count;

  jitsoftmax::Engine engine;  // on the current context, which the runtime has made by now
  const jitsoftmax::Kernel kernel = engine.prepare(problem);

  check(cudaMemcpyAsync(in.get(), x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice, stream.get()));
  kernel.launch(rows, stream.get());
  check(cudaMemcpyAsync(y.data(), out.get(), y.size() * sizeof(float), cudaMemcpyDeviceToHost, stream.get()));
  check(cudaStreamSynchronize(stream.get()));
  std::printf("%g %g\n", static_cast<double>(y.front()), static_cast<double>(y.back()));
}
