// An engine between the stand-ins.
#pragma once

#include <functional>
#include <jitsoftmax/jitsoftmax.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stand_in/driver.hpp"
#include "stand_in/nvrtc.hpp"

namespace jitsoftmax::testing {

// On the current context, without a cache directory.
inline Options stand_in_options() {
  Options options;
  options.cache_dir = "";
  options.nvrtc = stand_in::nvrtc_file();
  return options;
}

// Device addresses that nothing reads.
inline Rows some_rows(std::int64_t count = 100) {
  Rows rows;
  rows.in = reinterpret_cast<const void*>(std::uintptr_t{1} << 40);
  rows.out = reinterpret_cast<void*>(std::uintptr_t{2} << 40);
  rows.count = count;
  return rows;
}

// Device 0's primary context, current on this thread for a scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device = 0) { stand_in::set_current(stand_in::primary_context(device)); }
  ~CurrentDevice() { stand_in::set_current(nullptr); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
};

template <class Body>
ErrorCode code_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{};
}

// False if it did not come true within ten seconds.
inline bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Keeps what an engine warns of.
class Reports {
 public:
  [[nodiscard]] Log log() {
    return [this](LogLevel level, const std::string& message) {
      if (level < LogLevel::warning) return;
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
    };
  }
  [[nodiscard]] std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
inline bool is_generic(const stand_in::Launch& launch) { return has(launch.kernel, "Runtime"); }

// That a launch may run: the generic kernel, or the one of its columns.
inline bool is_right(const stand_in::Launch& launch) {
  return is_generic(launch) || has(launch.kernel, "Static<" + std::to_string(launch.arguments.cols) + ">");
}

}  // namespace jitsoftmax::testing
