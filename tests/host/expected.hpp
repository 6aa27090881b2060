// What softmax is, in f64, written from the definition; and how far a kernel may be from it.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <vector>

#include "plan/specialization.hpp"

namespace jitsoftmax::host_test {

// Softmax of one row of elements. (scale * x) is rounded as the kernels must.
[[nodiscard]] std::vector<double> expected_row(const Problem& problem, const std::vector<double>& row, float scale,
                                               MaskedRows masked);

// Whether `got` is as near to `expected` as the kernel promises: 1e-5 of it for f32, 1 ulp of the
// rounded value for f16 and bf16, 1e-13 of it for f64. The recurrence to the letter sums up to
// `cols` terms one after the other: its error may grow with their number.
[[nodiscard]] bool near(const plan::Specialization& kernel, const Problem& problem, double got, double expected);

}  // namespace jitsoftmax::host_test
