// The main() of tests that need a GPU: they are skipped as a whole where there is none.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <jitsoftmax/error.hpp>

#include "cuda/driver.hpp"

int main(int argc, char** argv) {
  try {
    (void)jitsoftmax::cuda::driver();
  } catch (const jitsoftmax::Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;  // ctest's SKIP_RETURN_CODE
  }
  return doctest::Context(argc, argv).run();
}
