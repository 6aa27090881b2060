// The CPU implementation: the same numbers as the kernels, on host pointers, with all cores.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>

namespace jitsoftmax::host {

// Returns when the output is complete. `rows` are checked, strides resolved, and not empty. Uses up
// to `threads` threads (0: as many as there are cores); a row's bits do not depend on how many.
void softmax(const Problem& problem, const Rows& rows, MaskedRows masked, int threads = 0);

}  // namespace jitsoftmax::host
