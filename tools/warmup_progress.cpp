#include "warmup_progress.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>

namespace jitsoftmax::tools {

std::optional<double> seconds_left(const WarmupPosition& position) noexcept {
  if (position.compiled == 0) return std::nullopt;
  const auto left = static_cast<double>(position.total - std::min(position.done, position.total));
  return position.seconds / static_cast<double>(position.compiled) * left;
}

std::string duration(double seconds) {
  constexpr double minute = 60;
  constexpr double hour = 60 * minute;
  if (seconds < 2 * minute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * hour) return fmt::format("{:.0f} min", seconds / minute);
  return fmt::format("{:.1f} h", seconds / hour);
}

std::string to_line(const WarmupPosition& position) {
  const std::string text = fmt::format("{} of {}", position.done, position.total);
  const std::optional<double> left = seconds_left(position);
  return left && position.done < position.total ? text + ", about " + duration(*left) + " left" : text;
}

std::string to_bar(const WarmupPosition& position) {
  constexpr std::size_t width = 20;
  const std::size_t filled = width * std::min(position.done, position.total) / std::max<std::size_t>(position.total, 1);
  return fmt::format("[{}{}] {}", std::string(filled, '#'), std::string(width - filled, '.'), to_line(position));
}

void WarmupProgress::show(std::size_t done, std::size_t total, bool compiled, const std::string& what) {
  constexpr std::chrono::seconds between_lines{10};
  if (compiled) ++compiled_;
  const Clock::time_point now = Clock::now();
  const WarmupPosition position{.done = done,
                                .total = total,
                                .compiled = compiled_,
                                .seconds = std::chrono::duration<double>(now - start_).count()};
  if (line_.is_on()) {
    line_.show(to_bar(position) + ": " + what);
  } else if (now - last_line_ >= between_lines) {
    std::fputs(("jitsoftmax: warmup: " + to_line(position) + "\n").c_str(), stderr);
    last_line_ = now;
  }
}

}  // namespace jitsoftmax::tools
