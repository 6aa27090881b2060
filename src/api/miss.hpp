// Miss: what Options::on_miss comes to for an engine.
#pragma once

#include <jitsoftmax/engine.hpp>

namespace jitsoftmax {

// Whether the generic kernel serves a problem until the exact one is there. Not where bits are promised,
// since the two round differently, nor a variant; and the CPU has nothing to wait for.
[[nodiscard]] inline bool serves_generic_first(const Options& options) noexcept {
  return options.on_miss == OnMiss::background && options.device.kind() != Device::Kind::host &&
         !options.deterministic && options.variant.empty();
}

}  // namespace jitsoftmax
