// RotatedBuffers: device memory of our own to measure kernels on. Several sets of random input and
// output, so that no launch finds its input in the L2 cache.
#pragma once

#include <cstdint>
#include <functional>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/memory.hpp"
#include "tune/instruments.hpp"
#include "tune/verify.hpp"

namespace jitsoftmax::tune {

// Packed rows of a problem, `inner` as in Rows.
struct Shape {
  Problem problem;
  std::int64_t rows = 0;
  std::int64_t inner = 1;

  // Read once and written once.
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return rows * problem.cols * (size_of(problem.in) + size_of(problem.out));
  }
};

// The context that it was made in has to be current in every call, the destructor's too.
class RotatedBuffers {
 public:
  // As many sets as take `rotate_bytes` together, and at least 2.
  RotatedBuffers(const Instruments& instruments, const Shape& shape, std::int64_t rotate_bytes);

  [[nodiscard]] int sets() const noexcept { return static_cast<int>(sets_.size()); }

  // Every buffer is aligned to 256 bytes and a multiple of 16 bytes long.
  [[nodiscard]] Rows rows(int set) const noexcept;

  // Runs `launch` on the legacy default stream over poisoned output and compares a sample of rows.
  [[nodiscard]] Verdict verify_sample(const std::function<void(const Rows&)>& launch, MaskedRows masked);

 private:
  struct Set {
    Set(std::size_t in_bytes, std::size_t out_bytes) : in(in_bytes), out(out_bytes) {}
    cuda::DeviceBuffer in;
    cuda::DeviceBuffer out;
  };

  // Rows of the first set, and what is right for them.
  struct Sample {
    std::vector<std::int64_t> slices;  // rows that lie between each other, together
    MaskedRows masked;
    Reference reference;
  };
  [[nodiscard]] Sample make_sample(MaskedRows masked) const;

  Shape shape_;
  std::vector<std::unique_ptr<Set>> sets_;
  std::optional<Sample> sample_;  // made when it is first asked for
};

}  // namespace jitsoftmax::tune
