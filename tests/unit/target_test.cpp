// Promise: the architecture that is compiled for runs on the device that was asked for.
#include "jit/target.hpp"

#include <doctest/doctest.h>

#include <vector>

using jitsoftmax::Arch;
using jitsoftmax::jit::knows;
using jitsoftmax::jit::PayloadKind;
using jitsoftmax::jit::target_for_device;

namespace {

// As NVRTC 13.0 and 12.8 list them.
const std::vector<Arch> nvrtc_13_0 = {{7, 5}, {8, 0},  {8, 6},  {8, 7},  {8, 8},  {8, 9},
                                      {9, 0}, {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}};
const std::vector<Arch> nvrtc_12_8 = {{7, 0}, {7, 2}, {7, 5},  {8, 0},  {8, 6}, {8, 7},
                                      {8, 9}, {9, 0}, {10, 0}, {10, 1}, {12, 0}};

void check_target(const Arch& device, const std::vector<Arch>& known, const Arch& arch, PayloadKind kind) {
  CAPTURE(device.major);
  CAPTURE(device.minor);
  const auto target = target_for_device(device, known);
  REQUIRE(target);
  CHECK_EQ(target->arch.major, arch.major);
  CHECK_EQ(target->arch.minor, arch.minor);
  CHECK_EQ(target->arch.suffix, arch.suffix);
  CHECK(target->kind == kind);
}

}  // namespace

TEST_CASE("A known device gets a cubin of its own, with its suffix") {
  check_target({9, 0}, nvrtc_13_0, {9, 0}, PayloadKind::cubin);
  check_target({9, 0, 'a'}, nvrtc_13_0, {9, 0, 'a'}, PayloadKind::cubin);
  check_target({10, 0, 'f'}, nvrtc_13_0, {10, 0, 'f'}, PayloadKind::cubin);
}

TEST_CASE("A newer minor version of a known major one gets the nearest older cubin, without a suffix") {
  check_target({9, 1}, nvrtc_13_0, {9, 0}, PayloadKind::cubin);
  check_target({10, 7, 'a'}, nvrtc_13_0, {10, 3}, PayloadKind::cubin);
  check_target({12, 9}, nvrtc_13_0, {12, 1}, PayloadKind::cubin);
  check_target({12, 1}, nvrtc_12_8, {12, 0}, PayloadKind::cubin);
}

TEST_CASE("Cubins do not cross between embedded chips and the others") {
  check_target({10, 3}, nvrtc_12_8, {10, 0}, PayloadKind::cubin);  // 10.1 is nearer, and embedded
  check_target({11, 1}, nvrtc_13_0, {11, 0}, PayloadKind::ptx);
  check_target({11, 0}, nvrtc_12_8, {10, 1}, PayloadKind::ptx);
  check_target({8, 8}, nvrtc_12_8, {8, 7}, PayloadKind::ptx);
}

TEST_CASE("A newer major version gets PTX of the newest known one") {
  check_target({15, 0}, nvrtc_13_0, {12, 1}, PayloadKind::ptx);
  check_target({99, 9, 'a'}, nvrtc_13_0, {12, 1}, PayloadKind::ptx);
  check_target({13, 0}, nvrtc_12_8, {12, 0}, PayloadKind::ptx);
}

TEST_CASE("A device older than everything known gets nothing") {
  CHECK_FALSE(target_for_device({3, 5}, nvrtc_13_0));
  CHECK_FALSE(target_for_device({7, 0}, nvrtc_13_0));
  CHECK_FALSE(target_for_device({9, 0}, {}));
}

TEST_CASE("Variants count as known if their architecture is") {
  CHECK(knows(nvrtc_13_0, {9, 0, 'a'}));
  CHECK(knows(nvrtc_13_0, {12, 1}));
  CHECK_FALSE(knows(nvrtc_13_0, {3, 5}));
  CHECK_FALSE(knows(nvrtc_13_0, {99, 9}));
  CHECK_FALSE(knows(nvrtc_12_8, {10, 3, 'a'}));
}
