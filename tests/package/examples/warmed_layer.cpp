// A program in an image without NVRTC. Its kernels are in a read-only layer, its argument, that warmed_layer.sh filled
// when the image was built; nothing is compiled or written, and what the layer lacks is refused.
#include <cstdio>
#include <jitsoftmax/jitsoftmax.hpp>

namespace {

void prepare(jitsoftmax::Engine& engine, std::int64_t cols) {
  jitsoftmax::Problem problem;
  problem.cols = cols;
  try {
    (void)engine.prepare(problem);
    std::printf("rows of %d: ready\n", static_cast<int>(cols));
  } catch (const jitsoftmax::Error& error) {
    if (error.code() != jitsoftmax::ErrorCode::not_cached) throw;
    std::printf("rows of %d: not in the layer\n", static_cast<int>(cols));
  }
}

}  // namespace

int main(int, char** arguments) {
  jitsoftmax::Options options;
  options.device = jitsoftmax::Device::cuda(0);
  options.on_miss = jitsoftmax::OnMiss::fail;
  options.cache_layers = {arguments[1]};
  options.cache_dir = "";
  try {
    jitsoftmax::Engine engine(options);
    prepare(engine, 4096);
    prepare(engine, 4097);
    std::printf("compiled: %d\n", static_cast<int>(engine.stats().compiles));
  } catch (const jitsoftmax::Error& error) {
    if (error.code() != jitsoftmax::ErrorCode::no_driver) throw;
    std::puts("skipped: no GPU here");
    return 77;
  }
}
