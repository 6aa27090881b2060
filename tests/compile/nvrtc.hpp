// The compiler of the tests that need NVRTC and nothing else.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <jitsoftmax/engine.hpp>

#include "jit/compiler.hpp"

namespace jitsoftmax::testing {

constexpr int skipped = 77;  // ctest's SKIP_RETURN_CODE

inline std::string nvrtc_path() { return Options::from_environment().nvrtc; }

// Ends the process as "skipped" where there is no NVRTC. doctest cannot skip at run time.
inline jit::Compiler compiler_or_skip() {
  try {
    (void)jit::Compiler(nvrtc_path(), {}).version();
  } catch (const Error& error) {
    std::printf("skipped: %s\n", error.what());
    std::exit(skipped);  // NOLINT(concurrency-mt-unsafe): nothing else runs yet
  }
  return jit::Compiler(nvrtc_path(), {});
}

}  // namespace jitsoftmax::testing
