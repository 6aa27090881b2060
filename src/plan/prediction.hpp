// Prediction: what share of a copy's speed a kernel reaches, from what it takes of a multiprocessor and from what one
// H200 does. Pure. A model for people who ask why a kernel is slow; nothing is chosen by it.
//
//   time of a launch = launch + one block alone + the longest of what all blocks together have to wait for
//
// One block alone waits for its loads and for the agreement on maximum and sum. All together wait for
//
// * the memory: bytes over bandwidth, with a row that is read again only if those under way do not fit in the L2 cache,
// * latency, by Little's law: as many waves of blocks as it takes, each as long as a block lives, bytes included. Bytes
//   in flight over latency is the same said as a rate, and the first wave is the block alone,
// * instructions, the bytes that one multiprocessor can move, where blocks are few, and the start of clusters.
//
// What is nearly as long as the longest adds to it: the terms are joined by their norm of order 4. The time of the copy
// is launch and bytes over bandwidth.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <optional>

#include "plan/occupancy.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax::plan {

// Nothing where there is no model: another architecture than sm_90, other families than registers, looped and safe, or
// a kernel of which no block fits. `problem` has columns, `rows` is at least 1.
[[nodiscard]] std::optional<double> predicted_share(const Problem& problem, std::int64_t rows,
                                                    const Specialization& specialization, const Occupancy& occupancy,
                                                    const Arch& arch) noexcept;

// How far off the model is, as |predicted / measured - 1|, over the results that its constants are from:
// tools/prediction_error.py.
struct PredictionError {
  int kernels = 0;  // that were measured
  double median = 0;
  double p90 = 0;
  double worst = 0;
};
inline constexpr PredictionError error_of_choices{.kernels = 177, .median = 0.020, .p90 = 0.12, .worst = 0.31};
// Of all candidates at some shapes, the bad ones included.
inline constexpr PredictionError error_of_candidates{.kernels = 489, .median = 0.053, .p90 = 0.32, .worst = 1.47};

}  // namespace jitsoftmax::plan
