// One row of a benchmark: several kernels for one shape beside a copy of the same bytes, each
// verified before it is timed.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string>
#include <vector>

#include "clock_meter.hpp"
#include "cuda/device.hpp"
#include "jit/compiler.hpp"
#include "kernel_facts.hpp"
#include "tune/instruments.hpp"
#include "tune/timer.hpp"
#include "verify.hpp"

namespace jitsoftmax::tools {

// A kernel to be measured: an engine that chooses it, and what people call it.
struct Contender {
  std::string name;  // "best" or a variant's
  Engine* engine = nullptr;
};

struct Measured {
  std::string name;
  std::string kernel;                // the specialization that ran
  std::string error;                 // why it was not timed
  std::optional<Verdict> verdict;    // of a sample of rows
  tune::Timing cold;                 // buffers rotated past the L2; seconds a launch
  std::optional<tune::Timing> warm;  // one set of buffers, where it fits the L2
  std::optional<KernelFacts> facts;  // where they are known
};

struct BenchCase {
  Problem problem;
  std::int64_t rows = 0;
  std::int64_t inner = 1;        // of a strided problem
  std::int64_t bytes = 0;        // read once and written once
  Measured copy;                 // the fastest copy
  std::optional<Clocks> clocks;  // when the last round was over
  std::vector<Measured> kernels;
};

struct BenchOptions {
  int rounds = 7;
  double seconds = 2e-3;                    // that one measurement lasts at least
  std::int64_t rotate_bytes = 400'000'000;  // that the rotated buffers take together, at least
};

// `context`'s device is the one that the engines work on, and is current.
[[nodiscard]] BenchCase bench(const cuda::PrimaryContext& context, const tune::Instruments& instruments,
                              const Problem& problem, std::int64_t rows, const std::vector<Contender>& contenders,
                              const BenchOptions& options);

}  // namespace jitsoftmax::tools
