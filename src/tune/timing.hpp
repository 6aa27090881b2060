// Timing: what was measured of one kernel in one session.
#pragma once

#include <vector>

namespace jitsoftmax::tune {

// Seconds a launch, one value a round; at least one.
struct Timing {
  std::vector<double> rounds;

  [[nodiscard]] double median() const { return quantile(0.5); }
  [[nodiscard]] double quantile(double q) const;  // 0 <= q <= 1, interpolated
};

}  // namespace jitsoftmax::tune
