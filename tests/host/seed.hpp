// The seed of a test: a new one every run, or the one in JITSOFTMAX_SEED, to see a failure again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace jitsoftmax::host_test {

inline std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* const given = std::getenv("JITSOFTMAX_SEED");
    return given != nullptr ? std::stoull(given) : std::uint64_t{std::random_device{}()};
  }();
  return value;
}

}  // namespace jitsoftmax::host_test
