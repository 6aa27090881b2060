// Reports go to the caller's callback and nowhere else.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <string>

namespace jitsoftmax::base {

// A callback must not throw; one that does is not allowed to break the library.
inline void report(const Log& log, LogLevel level, const std::string& message) noexcept {
  if (!log) return;
  try {
    log(level, message);
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody left to tell
  }
}

}  // namespace jitsoftmax::base
