#include "jit/target.hpp"

#include <algorithm>

namespace jitsoftmax::jit {
namespace {

constexpr int number(const Arch& arch) noexcept { return arch.major * 10 + arch.minor; }

// CUDA's binary compatibility between minor versions does not cover these, in either direction.
// (10.1 is the first name of 11.0.)
constexpr bool embedded(const Arch& arch) noexcept {
  constexpr int chips[] = {53, 62, 72, 87, 88, 101, 110};
  return std::ranges::find(chips, number(arch)) != std::end(chips);
}

}  // namespace

bool knows(std::span<const Arch> known, const Arch& arch) noexcept {
  return std::ranges::any_of(known, [&](const Arch& k) { return k.major == arch.major && k.minor == arch.minor; });
}

std::optional<Target> target_for_device(const Arch& device, std::span<const Arch> known) noexcept {
  if (knows(known, device)) return Target{device, PayloadKind::cubin};

  const Arch* same_major = nullptr;
  const Arch* lower = nullptr;
  for (const Arch& arch : known) {
    if (number(arch) >= number(device)) continue;
    if (lower == nullptr || number(arch) > number(*lower)) lower = &arch;
    if (arch.major != device.major || embedded(arch) || embedded(device)) continue;
    if (same_major == nullptr || arch.minor > same_major->minor) same_major = &arch;
  }
  if (same_major != nullptr) return Target{{device.major, same_major->minor}, PayloadKind::cubin};
  if (lower != nullptr) return Target{{lower->major, lower->minor}, PayloadKind::ptx};
  return std::nullopt;
}

}  // namespace jitsoftmax::jit
