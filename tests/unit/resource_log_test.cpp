// Promise: what the assembler reports about a kernel is read right, from logs of several versions.
#include <doctest/doctest.h>

#include <string>

#include "jit/resources.hpp"

using jitsoftmax::jit::parse_resources;
using jitsoftmax::jit::Resources;

namespace {

void check(const Resources& got, const Resources& expected) {
  CHECK_EQ(got.registers, expected.registers);
  CHECK_EQ(got.stack_bytes, expected.stack_bytes);
  CHECK_EQ(got.spill_bytes, expected.spill_bytes);
  CHECK_EQ(got.shared_bytes, expected.shared_bytes);
}

}  // namespace

TEST_CASE("NVRTC 13.0: registers and shared memory") {
  check(parse_resources("ptxas info    : 0 bytes gmem\n"
                        "ptxas info    : Compiling entry function '_Z1kILi3EEvPf' for 'sm_90'\n"
                        "ptxas info    : Function properties for _Z1kILi3EEvPf\n"
                        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                        "ptxas info    : Used 23 registers, used 1 barriers, 128 bytes smem\n"
                        "ptxas info    : Compile time = 3.779 ms\n",
                        "_Z1kILi3EEvPf"),
        {.registers = 23, .stack_bytes = 0, .spill_bytes = 0, .shared_bytes = 128});
}

TEST_CASE("NVRTC 12.0: no barriers, some global memory") {
  check(parse_resources("ptxas info    : 304 bytes gmem\n"
                        "ptxas info    : Compiling entry function '_Z6simplePf' for 'sm_90'\n"
                        "ptxas info    : Function properties for _Z6simplePf\n"
                        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                        "ptxas info    : Used 8 registers\n",
                        "_Z6simplePf"),
        {.registers = 8, .stack_bytes = 0, .spill_bytes = 0, .shared_bytes = 0});
}

TEST_CASE("NVRTC 13.0: stack and spills of the kernel, and of a function that it calls") {
  check(
      parse_resources(
          "ptxas info    : Overriding maximum register limit 256 for '_Z1kILi3EEvPf' with  24 of maxrregcount option\n"
          "ptxas info    : 0 bytes gmem\n"
          "ptxas info    : Compiling entry function '_Z1kILi3EEvPf' for 'sm_90'\n"
          "ptxas info    : Function properties for _Z1kILi3EEvPf\n"
          "ptxas         .     208 bytes stack frame, 36 bytes spill stores, 40 bytes spill loads\n"
          "ptxas info    : Used 24 registers, used 1 barriers, 208 bytes cumulative stack size\n"
          "ptxas info    : Compile time = 50.133 ms\n"
          "ptxas info    : Function properties for _Z1fPfi\n"
          "ptxas         .     16 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads\n",
          "_Z1kILi3EEvPf"),
      {.registers = 24, .stack_bytes = 224, .spill_bytes = 80, .shared_bytes = 0});
}

TEST_CASE("A stand-alone assembler's layout, with constant memory") {
  check(parse_resources("ptxas info    : Function properties for k\n"
                        "    96 bytes stack frame, 64 bytes spill stores, 68 bytes spill loads\n"
                        "ptxas info    : Used 255 registers, 49152 bytes smem, 560 bytes cmem[0], 16 bytes cmem[2]\n",
                        "k"),
        {.registers = 255, .stack_bytes = 96, .spill_bytes = 132, .shared_bytes = 49152});
}

TEST_CASE("Of several kernels each has its own part, also where the name of one begins that of another") {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1kILi3EEvPf' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z1kILi3EEvPf\n"
      "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 64 bytes smem\n"
      "ptxas info    : Compiling entry function '_Z1k' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z1k\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 23 registers, used 1 barriers, 128 bytes smem\n";
  check(parse_resources(log, "_Z1kILi3EEvPf"),
        {.registers = 32, .stack_bytes = 8, .spill_bytes = 28, .shared_bytes = 64});
  check(parse_resources(log, "_Z1k"), {.registers = 23, .stack_bytes = 0, .spill_bytes = 0, .shared_bytes = 128});
  check(parse_resources(log, "_Z2"), {});
}

TEST_CASE("A log that says nothing, or less than nothing, is all zeros") {
  check(parse_resources("", "k"), {});
  check(parse_resources(" registers", "k"), {});
  check(parse_resources("bytes stack frame, x bytes spill stores, 99999999999999999999 bytes smem", "k"), {});
  check(parse_resources("jitsoftmax.cu(3): warning #177-D: variable \"registers\" was declared but never used\n", "k"),
        {});
}
