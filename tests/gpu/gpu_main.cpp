// The main() of tests that need a GPU, or more: they are skipped as a whole where there are fewer.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <jitsoftmax/error.hpp>

#include "cuda/device.hpp"

#ifndef JITSOFTMAX_GPUS_NEEDED
#define JITSOFTMAX_GPUS_NEEDED 1
#endif

int main(int argc, char** argv) {
  try {
    const int count = jitsoftmax::cuda::device_count();
    if (count < JITSOFTMAX_GPUS_NEEDED) {
      std::printf("skipped: needs %d GPUs, and there are %d\n", JITSOFTMAX_GPUS_NEEDED, count);
      return 77;  // ctest's SKIP_RETURN_CODE
    }
  } catch (const jitsoftmax::Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
