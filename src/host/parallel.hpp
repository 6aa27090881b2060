// A loop over all cores: threads that live for one call, so that there is no pool to outlive a fork
// or the end of the process.
#pragma once

#include <cstdint>
#include <functional>

namespace jitsoftmax::host {

// The cores that this process may run on.
[[nodiscard]] int available_cores();

// Calls work(task, worker) once for every task in [0, tasks), from up to `workers` threads of which
// the caller is one; worker < workers tells them apart. Returns when all are done. `work` must not
// throw. Where no more threads are to be had, fewer do the same.
void parallel(std::int64_t tasks, int workers, const std::function<void(std::int64_t task, int worker)>& work);

}  // namespace jitsoftmax::host
