// The built-in choice: which specializations a problem needs. It depends on the problem and the
// architecture alone, so that a warmed cache holds what a launch will ask for. Where it is to
// be deterministic, all specializations of a bundle give the elements of a row to the same lanes: a
// row's bits do not depend on which of them runs.
#pragma once

#include <cstddef>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <vector>

#include "plan/specialization.hpp"

namespace jitsoftmax::plan {

// In order of preference; the last one accepts every launch of the problem.
using Bundle = std::vector<Specialization>;

// `problem` is checked and has columns. Throws invalid_argument if `variant` names a kernel that
// cannot serve the problem.
[[nodiscard]] Bundle choose(const Problem& problem, const Arch& arch, const Variant& variant = {},
                            bool deterministic = false);

// For any number of columns (those of `problem` do not count), known at the launch.
[[nodiscard]] Bundle generic_bundle(Problem problem, const Arch& arch);

// The specialization for aligned rows, where there is anything to gain, and the one for any.
[[nodiscard]] Bundle bundle_of(const Specialization& specialization, bool deterministic);

// Elements of the input that an access, or a lane's copy into shared memory, is of.
[[nodiscard]] int elements_of_access(const Specialization& specialization) noexcept;

// Whether a launch of these rows (strides resolved) fits what the specialization was compiled for.
[[nodiscard]] bool accepts(const Specialization& specialization, const Rows& rows) noexcept;

// The first of the bundle that accepts the rows.
[[nodiscard]] std::size_t select(const Bundle& bundle, const Rows& rows) noexcept;

}  // namespace jitsoftmax::plan
