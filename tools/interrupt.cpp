#include "interrupt.hpp"

#include <array>
#include <atomic>
#include <cstddef>

namespace jitsoftmax::tools {
namespace {

constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};

// Global because a signal handler has nothing else to write to.
std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void remember(int signal) { received.store(signal); }

}  // namespace

InterruptScope::InterruptScope() {
  static_assert(sizeof(before_) / sizeof(before_[0]) == signals.size());
  received.store(0);
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < signals.size(); ++i) {
    sigaction(signals[i], nullptr, &before_[i]);
    // A signal that the parent had ignored (nohup) stays ignored.
    if (before_[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
}

int interrupted() noexcept { return received.load(); }

void stop_if_interrupted() {
  if (const int signal = interrupted(); signal != 0) throw Interrupted{signal};
}

}  // namespace jitsoftmax::tools
