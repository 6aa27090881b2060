// One target a reader of files that may hold anything. A target is a program of libFuzzer's where that
// is built (JITSOFTMAX_BUILD_FUZZERS), and everywhere a test that runs its corpus once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Reads the bytes in every way that the reader offers. Returns 0; ends the process where a promise is
// broken. The bytes are in memory of exactly this size, so that a sanitizer sees any access outside.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

inline void require(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

}  // namespace fuzz
