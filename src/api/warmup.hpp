// Warm-up: compiling a set of problems into the cache, in parallel.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <vector>

#include "api/code.hpp"

namespace jitsoftmax {

// One kernel to make.
struct WarmupWork {
  plan::Specialization specialization;
  WarmupItem item;
};

// Every kernel that the problems need on the architectures, each once; problems share kernels. Throws
// invalid_argument for a problem that makes no sense.
[[nodiscard]] std::vector<WarmupWork> list_work(const Options& engine, const std::vector<Problem>& problems,
                                                const std::vector<Arch>& archs);

// Finds or compiles one and says so in its item, also that it failed. Throws Error for what concerns all of them
// alike: no_compiler, io_error.
void warm_up(Code& code, WarmupWork& work, bool refresh);

// As Engine::warmup.
[[nodiscard]] WarmupReport warm_up(Code& code, const Options& engine, const std::vector<Problem>& problems,
                                   const std::vector<Arch>& archs, const WarmupOptions& options);

}  // namespace jitsoftmax
