// The loops behind the CPU implementation, compiled once for each instruction set and chosen when
// the program runs. They work on a scratch buffer of accumulators: float, or double for f64.
//
// Every variant computes the same bits: no fused multiply-add, and sums are formed over 16 lanes
// however wide the machine's vectors are.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <vector>

namespace jitsoftmax::host {

constexpr int group_lanes = 16;  // lanes that are summed separately; a cache line of float
constexpr int tile_lanes = 64;   // rows that are worked on side by side: 4 groups

// A row's maximum (0 if the row has nothing above -inf, so that -inf minus it stays -inf) and what
// its elements are multiplied by (softmax) or lessened by (log_softmax).
struct Shift {
  double maximum;
  double factor;
};

// Up to tile_lanes rows side by side. Element j of lane l is at offsets[l] + j * step, or at
// l + j * step where `offsets` is null. In scratch, group g keeps its element j at
// (g * length + j) * group_lanes.
struct Tile {
  std::int64_t length;
  std::int64_t step;
  const std::int64_t* offsets;
  int lanes;

  [[nodiscard]] constexpr int groups() const noexcept { return (lanes + group_lanes - 1) / group_lanes; }
};

struct Kernels {
  // By DType. `y` is scratch.
  struct Element {
    // y[i] = scale * x[i] for i < n; -inf from there to the next multiple of group_lanes.
    void (*load)(void* y, const void* x, std::int64_t n, float scale);
    void (*load_tile)(void* y, const void* x, const Tile& tile, float scale);
    // By Op. softmax: out[i] = y[i] * factor; log_softmax: out[i] = (y[i] - maximum) - factor.
    // `stream`: past the caches, for outputs that do not fit there.
    void (*store[2])(void* out, const void* y, std::int64_t n, Shift shift, bool stream);
    void (*store_tile[2])(void* out, const void* y, const Tile& tile, const Shift* lanes);
  };

  // By whether the accumulator is double. `n` counts rows of group_lanes elements.
  struct Accumulator {
    double (*maximum)(const void* y, std::int64_t n);                // over all of them; drops NaN
    void (*maxima)(const void* y, std::int64_t n, double* maximum);  // a lane
    // The sum of exp(y - maximum), which then also replaces y if `keep`. A NaN anywhere makes it NaN.
    double (*sum)(void* y, std::int64_t n, double maximum, bool keep);                 // over all of them
    void (*sums)(void* y, std::int64_t n, const double* maximum, double* sum, bool keep);  // a lane
  };

  Element element[4];
  Accumulator accumulator[2];
};

extern const Kernels kernels_baseline;
#ifdef JITSOFTMAX_HOST_X86
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

// The variants that this CPU can run, the fastest last.
[[nodiscard]] const std::vector<const Kernels*>& usable_kernels();

// host::softmax with kernels other than the fastest.
void softmax(const Problem& problem, const Rows& rows, MaskedRows masked, int threads, const Kernels& kernels);

}  // namespace jitsoftmax::host
