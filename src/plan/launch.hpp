// What one launch hands to the driver, as pure functions: checked rows, grid and arguments.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>

#include "kernel_templates/config.cuh"
#include "plan/specialization.hpp"

namespace jitsoftmax::plan {

// Throws invalid_argument if the library cannot serve the problem on any device.
void check(const Problem& problem);

// Throws invalid_argument if the rows do not fit the problem; else the rows with packed strides
// filled in. Nothing is to be launched if problem.cols or rows.count is 0.
[[nodiscard]] Rows check(const Problem& problem, const Rows& rows);

struct Geometry {
  unsigned grid_x = 1;
  unsigned grid_y = 1;  // > 1 where more blocks are needed than one dimension of a grid takes
  unsigned block = 1;
  unsigned cluster = 1;  // blocks along x that form one
  unsigned shared = 0;   // bytes
};

// `resident_blocks`: blocks of this kernel that the device holds at once, for persistent kernels.
// `rows` are checked and not empty.
[[nodiscard]] Geometry geometry(const Specialization& specialization, const Rows& rows, int resident_blocks) noexcept;

[[nodiscard]] kernels::Arguments arguments(const Problem& problem, const Rows& rows, MaskedRows masked) noexcept;

}  // namespace jitsoftmax::plan
