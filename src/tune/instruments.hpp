// Instruments: the device code that measuring needs, next to what is measured. Random input, and
// copies that move the same bytes.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <functional>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cuda/module.hpp"
#include "jit/compiler.hpp"
#include "tune/timer.hpp"

namespace jitsoftmax::tune {

// Each is compiled when it is first used. For one thread; the same context has to be current in every
// call. `compiler` outlives it.
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
  [[nodiscard]] const std::vector<Copy>& copies() const;

 private:
  jit::Compiler& compiler_;
  Arch arch_;
  mutable std::array<std::optional<cuda::LoadedKernel>, 4> fills_;  // by DType
  mutable std::vector<Copy> copies_;
};

}  // namespace jitsoftmax::tune
