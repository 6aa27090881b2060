// Ctrl-C as a question that loops ask between two steps.
#pragma once

#include <csignal>

namespace jitsoftmax::tools {

// While it lives, the first SIGINT, SIGTERM or SIGHUP is remembered instead of ending the process;
// a second one ends it at once. One at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  struct sigaction before_[3] = {};
};

// The signal that was remembered, or 0. From any thread.
[[nodiscard]] int interrupted() noexcept;

struct Interrupted {
  int signal;
};

// Throws Interrupted.
void stop_if_interrupted();

}  // namespace jitsoftmax::tools
