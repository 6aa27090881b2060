// Variants: the kernels that people ask for by name or by parameters.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <string>
#include <vector>

#include "plan/specialization.hpp"

namespace jitsoftmax::plan {

// The point in the search space that the variant means for this problem: `base` (the built-in
// choice) or the named point, changed by the variant's fields. Throws invalid_argument.
[[nodiscard]] Specialization point(const Problem& problem, const Variant& variant, const Specialization& base);

// The kernel that serves any number of columns, compiled for those of the problem.
[[nodiscard]] Specialization generic(const Problem& problem);

// The variant whose point is this specialization.
[[nodiscard]] Variant variant_of(const Specialization& specialization);

// "generic", "safe3", "v0", ... "v4"
[[nodiscard]] std::vector<std::string> variant_names();

}  // namespace jitsoftmax::plan
