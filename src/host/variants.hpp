// Which of the kernels' variants this CPU runs.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <vector>

#include "host/kernels.hpp"

namespace jitsoftmax::host {

// The variants that this CPU can run, the fastest last.
[[nodiscard]] const std::vector<const Kernels*>& usable_kernels();

// "AVX-512", "AVX2", "baseline"
[[nodiscard]] const char* name_of(const Kernels& kernels) noexcept;

// host::softmax with kernels other than the fastest.
void softmax(const Problem& problem, const Rows& rows, MaskedRows masked, int threads, const Kernels& kernels);

}  // namespace jitsoftmax::host
