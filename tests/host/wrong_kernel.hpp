// Kernels that are right or wrong on purpose, and what the executor says of them.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "host/executor.hpp"
#include "host/seed.hpp"

namespace jitsoftmax::host_test {

constexpr int tries = 20;  // orders of the threads

inline plan::Geometry geometry(unsigned threads, unsigned shared = 0, unsigned blocks = 1) {
  return {.grid = blocks, .block = threads, .shared = shared};
}

// The message of the error that every order of the threads ends in; it names the coordinates.
inline std::string caught(const plan::Geometry& shape, const std::function<void()>& kernel) {
  std::string message;
  for (std::uint64_t i = 0; i < tries; ++i) {
    INFO("JITSOFTMAX_SEED=", seed());
    message.clear();
    try {
      run_grid(shape, kernel, seed() + i);
    } catch (const ExecutionError& error) {
      message = error.what();
    }
    REQUIRE_FALSE(message.empty());
    CHECK(message.find("block ") != std::string::npos);
    CHECK(message.find("thread ") != std::string::npos);
    CHECK(message.find("seed " + std::to_string(seed() + i)) != std::string::npos);
  }
  return message;
}

inline bool says(const std::string& message, const std::string& part) {
  CAPTURE(message);
  CAPTURE(part);
  return message.find(part) != std::string::npos;
}

}  // namespace jitsoftmax::host_test
