// Which architecture to compile for, given what the compiler knows. Pure.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <optional>
#include <span>

#include "jit/cubin.hpp"

namespace jitsoftmax::jit {

// True if `known` has the architecture. NVRTC's list omits the variants ("90a", "100f"), so suffixes
// do not count: whether a variant exists is for the compile to say.
[[nodiscard]] bool knows(std::span<const Arch> known, const Arch& arch) noexcept;

struct Target {
  Arch arch;
  PayloadKind kind = PayloadKind::cubin;
};

// What runs on a device, best first:
//   1. a cubin for exactly the device;
//   2. a cubin for the nearest lower minor version of the same major one: the driver accepts these,
//      except between embedded (Tegra) chips and the others;
//   3. PTX of the newest known architecture below the device, which the driver compiles on load.
// Fallbacks have no suffix: variants run on their own architecture only. Nothing if the device is
// older than everything in `known`.
[[nodiscard]] std::optional<Target> target_for_device(const Arch& device, std::span<const Arch> known) noexcept;

}  // namespace jitsoftmax::jit
