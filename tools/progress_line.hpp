// ProgressLine: one line on stderr that is overwritten, on a terminal only.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace jitsoftmax::tools {

class ProgressLine {
 public:
  ProgressLine() : on_(::isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether there is a terminal to show it on.
  [[nodiscard]] bool is_on() const noexcept { return on_; }

  void show(const std::string& text) {
    if (!on_) return;
    constexpr std::size_t width = 79;
    std::fputs(("\r\033[K" + text.substr(0, width)).c_str(), stderr);
    shown_ = true;
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  bool on_;
  bool shown_ = false;
};

}  // namespace jitsoftmax::tools
