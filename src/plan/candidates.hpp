// The legal search space: what can be compiled at all, and the points of it that have a name.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <string>
#include <vector>

#include "plan/specialization.hpp"

namespace jitsoftmax::plan {

// Why no kernel can be compiled from this specialization, as a clause; empty if one can. What the
// kernels assert when they are compiled is refused here first, with a reason for people.
[[nodiscard]] std::string illegal(const Specialization& specialization);

// A specialization with its columns known, its shared memory planned and rows that need not be
// aligned.
[[nodiscard]] Specialization specialization(const Problem& problem, Family family, const kernels::Config& config);

// The point in the search space that the variant means for this problem: `base` (the built-in
// choice) or the named point, changed by the variant's fields. Throws invalid_argument.
[[nodiscard]] Specialization point(const Problem& problem, const Variant& variant, const Specialization& base);

// "generic", "safe3", "v0", ... "v4"
[[nodiscard]] std::vector<std::string> variant_names();

// How the registers family covers a row; nothing if the row is too long for it.
[[nodiscard]] std::optional<kernels::Config> registers_config(const Problem& problem, int vector);

// The widest access, in elements, that both sides can take: 16 bytes of the larger type.
[[nodiscard]] constexpr int widest_vector(const Problem& problem) noexcept {
  return 16 / (size_of(problem.in) > size_of(problem.out) ? size_of(problem.in) : size_of(problem.out));
}

}  // namespace jitsoftmax::plan
