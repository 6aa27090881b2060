// What the host and a kernel say to each other: the Config that a kernel is compiled for and the
// Arguments of one launch. Plain C++, included by the host's planning and by every kernel.
#pragma once

namespace jitsoftmax::kernels {

// How a block's threads cover rows. A kernel is a template over this value; the host spells it as
// the NVRTC name expression. A family reads the fields that it needs.
struct Config {
  int threads = 1;          // threads that share a row: a power of two up to 32, or a multiple of 32
  int rows = 1;             // rows a block; a block has threads * rows threads
  int vector = 1;           // elements of the input an access
  int elements = 1;         // elements that a thread holds at a time, a multiple of `vector`
  bool aligned = false;     // every row of input and output starts at a multiple of `vector` elements
  bool blocked = false;     // maxima over chunks of `elements` and compensated sums; else the literal recurrence
  bool persistent = false;  // the grid fills the device once and strides over the rows
  int resident =
      0;  // blocks that a multiprocessor is to hold at once, which bounds the registers; 0: the compiler's choice
  int shared = 0;  // bytes of shared memory a block, as planned by the host
};

// One launch. Strides and `inner` are in elements; element j of row r is at
// (r / inner) * stride + j * inner + (r % inner).
struct Arguments {
  void* out = nullptr;
  const void* in = nullptr;
  long long rows = 0;
  long long cols = 0;
  long long out_stride = 0;
  long long in_stride = 0;
  long long inner = 1;
  float scale = 1;
  int zero_masked = 0;  // 1: a row of -inf only becomes zeros (log_softmax: -inf) instead of NaN
};

constexpr int warp_size = 32;

// Shared memory that merging one partial (max, sum) a warp takes, by a block of `config`; none if
// every row fits in a warp. A partial is two values of `accumulator_bytes`.
constexpr int merge_bytes(const Config& config, int accumulator_bytes) {
  return config.threads > warp_size ? config.rows * (config.threads / warp_size) * 2 * accumulator_bytes : 0;
}

}  // namespace jitsoftmax::kernels
