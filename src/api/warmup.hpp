// Warm-up: compiling a set of problems into the cache, in parallel.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <vector>

#include "api/code.hpp"

namespace jitsoftmax {

// As Engine::warmup.
[[nodiscard]] WarmupReport warm_up(Code& code, const Options& engine, const std::vector<Problem>& problems,
                                   const std::vector<Arch>& archs, const WarmupOptions& options);

}  // namespace jitsoftmax
