// How far a warmup is and how long it may still take: a bar on a terminal, now and then a line elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "progress_line.hpp"

namespace jitsoftmax::tools {

struct WarmupPosition {
  std::size_t done = 0;
  std::size_t total = 0;
  std::size_t compiled = 0;  // of those that are done
  double seconds = 0;        // since the start
};

// As if everything that is left had to be compiled; nothing before the first was.
[[nodiscard]] std::optional<double> seconds_left(const WarmupPosition& position) noexcept;

[[nodiscard]] std::string duration(double seconds);                 // "8 s", "3 min", "2.5 h"
[[nodiscard]] std::string to_line(const WarmupPosition& position);  // "120 of 200, about 8 s left"
[[nodiscard]] std::string to_bar(const WarmupPosition& position);   // "[############........] 120 of 200, ..."

// For one thread at a time.
class WarmupProgress {
 public:
  void show(std::size_t done, std::size_t total, bool compiled, const std::string& what);
  void clear() { line_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  ProgressLine line_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_line_ = start_;
  std::size_t compiled_ = 0;
};

}  // namespace jitsoftmax::tools
