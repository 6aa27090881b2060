#include <cstdio>
#include <jitsoftmax/jitsoftmax.hpp>
#include <vector>

int main() {
  std::vector<float> x(8 * 4096, 1.0F), y(x.size());  // 8 rows; on a GPU: device memory
  jitsoftmax::Problem problem;                        // f32 to f32, softmax, contiguous rows
  problem.cols = 4096;
  jitsoftmax::Rows rows;
  rows.in = x.data();
  rows.out = y.data();
  rows.count = 8;
  jitsoftmax::Engine engine;
  const jitsoftmax::Kernel kernel = engine.prepare(problem);  // found or compiled: once
  kernel.launch(rows);                                        // a stream may follow
  std::printf("%g\n", y[0]);                                  // 1 / 4096
}
