#include "tune/timing.hpp"

#include <algorithm>
#include <cstddef>

namespace jitsoftmax::tune {

double Timing::quantile(double q) const {
  std::vector<double> sorted = rounds;
  std::sort(sorted.begin(), sorted.end());
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace jitsoftmax::tune
