#include "tune/instruments.hpp"

#include <memory>
#include <utility>

#include "cuda/driver.hpp"
#include "jit/source.hpp"
#include "kernel_templates/config.cuh"

namespace jitsoftmax::tune {
namespace {

constexpr int fill_threads = 256;
constexpr int packet_bytes = 16;
constexpr const char* element_types[] = {"f16", "bf16", "float", "double"};

cuda::LoadedKernel load(jit::Compiler& compiler, const Arch& arch, std::string name, int threads) {
  const jit::Program program = jit::program("measure.cuh", std::move(name), arch);
  return {compiler.compile_for_device(program), cuda::LaunchShape{.block = static_cast<unsigned>(threads)}};
}

void launch(const cuda::LoadedKernel& kernel, std::int64_t blocks, int threads, kernels::Arguments arguments,
            CUstream stream) {
  cuda::launch(kernel.function(), {.grid = static_cast<unsigned>(blocks), .block = static_cast<unsigned>(threads)},
               stream, &arguments);
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }

}  // namespace

Instruments::Instruments(jit::Compiler& compiler, const Arch& arch) : compiler_(compiler), arch_(arch) {}

const std::vector<Instruments::Copy>& Instruments::copies() const {
  if (!copies_.empty()) return copies_;
  std::vector<Copy> made;
  for (const auto& [threads, elements] : {std::pair{1024, 2}, {512, 4}, {256, 4}, {512, 1}}) {
    const std::string name =
        "copy<Config{.threads=" + std::to_string(threads) + ",.elements=" + std::to_string(elements) + "}>";
    const auto kernel = std::make_shared<const cuda::LoadedKernel>(load(compiler_, arch_, name, threads));
    made.push_back({name, [kernel, threads = threads, elements = elements](void* to, const void* from,
                                                                           std::int64_t bytes, CUstream stream) {
                      const std::int64_t packets = bytes / packet_bytes;
                      launch(*kernel, ceil_divide(packets, std::int64_t{threads} * elements), threads,
                             {.out = to, .in = from, .cols = packets}, stream);
                    }});
  }
  made.push_back({"cuMemcpyDtoDAsync", [](void* to, const void* from, std::int64_t bytes, CUstream stream) {
                    cuda::check(cuda::driver().MemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to),
                                                               reinterpret_cast<CUdeviceptr>(from),
                                                               static_cast<std::size_t>(bytes), stream),
                                "cuMemcpyDtoDAsync");
                  }});
  copies_ = std::move(made);
  return copies_;
}

void Instruments::fill(void* to, DType type, std::int64_t count, float deviation, int seed, CUstream stream) const {
  const auto at = static_cast<std::size_t>(type);
  if (!fills_[at]) {
    const std::string name = "fill<Config{.threads=" + std::to_string(fill_threads) + "}," + element_types[at] + ">";
    fills_[at].emplace(load(compiler_, arch_, name, fill_threads));
  }
  launch(*fills_[at], ceil_divide(count, fill_threads), fill_threads,
         {.out = to, .rows = seed, .cols = count, .scale = deviation}, stream);
}

}  // namespace jitsoftmax::tune
