// Instruments: the device code that measuring needs, next to what is measured. Random input, and
// copies that move the same bytes.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <string>
#include <vector>

#include "cuda/module.hpp"
#include "jit/compiler.hpp"
#include "tune/timer.hpp"

namespace jitsoftmax::tune {

// The context that it was made in has to be current in every call.
class Instruments {
 public:
  Instruments(jit::Compiler& compiler, const Arch& arch);

  // `count` random elements, roughly normal with the given standard deviation; the same for the
  // same seed.
  void fill(void* to, DType type, std::int64_t count, float deviation, int seed, CUstream stream) const;

  struct Copy {
    std::string name;
    std::function<void(void* to, const void* from, std::int64_t bytes, CUstream stream)> enqueue;
  };
  // Different ways of copying; the fastest of them is the limit. `bytes` is a multiple of 16, as is
  // every address.
  [[nodiscard]] const std::vector<Copy>& copies() const noexcept { return copies_; }

 private:
  std::vector<cuda::LoadedKernel> fills_;  // by DType
  std::vector<Copy> copies_;
};

}  // namespace jitsoftmax::tune
