// A warmup by several processes: NVRTC lets one thread at a time do a part of each compile, so that a process compiles
// at most about four times as fast with any number of threads as with one (tools/results/README.md).
#pragma once

#include <jitsoftmax/engine.hpp>
#include <vector>

namespace jitsoftmax::tools {

// As Engine::warmup of an engine with these options, with as many processes as `how.jobs`, of one thread each; they
// take kernels in turn. Messages to the log that several of them have come once. What a process was at when it was
// killed has failed, and the others go on; they end with this process, however it ends. To be called where there is no
// other thread.
[[nodiscard]] WarmupReport warm_up_in_processes(const Options& options, const std::vector<Problem>& problems,
                                                const std::vector<Arch>& archs, const WarmupOptions& how);

}  // namespace jitsoftmax::tools
