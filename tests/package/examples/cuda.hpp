// What the examples with the CUDA runtime share: calls that are checked, and owners of memory and streams.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <type_traits>

inline constexpr int skipped = 77;

inline bool gpu_is_here() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return true;
  std::puts("skipped: no GPU here");
  return false;
}

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct FreeDevice {
  void operator()(float* floats) const noexcept { cudaFree(floats); }
};
using DeviceFloats = std::unique_ptr<float[], FreeDevice>;

inline DeviceFloats device_floats(std::size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(float)));
  return DeviceFloats(static_cast<float*>(memory));
}

struct DestroyStream {
  void operator()(cudaStream_t stream) const noexcept { cudaStreamDestroy(stream); }
};
using OwnedStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;

inline OwnedStream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return OwnedStream(stream);
}
