// What one launch hands to the driver, as pure functions: checked rows, grid and arguments.
#pragma once

#include <cstddef>
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

// Takes from `rest` the rows that one launch has blocks for: as good as always all of them. `rest` is checked and not
// empty, and what is left in it may be.
[[nodiscard]] Rows take_rows_of_launch(const Specialization& specialization, const Problem& problem,
                                       Rows& rest) noexcept;

// In one dimension: a kernel that has to look at two of them, and whether its block is one to spare, begins later.
struct Geometry {
  unsigned grid = 1;  // blocks
  unsigned block = 1;
  unsigned cluster = 1;  // blocks that form one
  unsigned gang = 1;     // of the split family: neighbouring blocks that share a row; the whole grid has to be resident
  unsigned shared = 0;   // bytes
  unsigned at_once = 0;  // such launches that the device has room for at the same time
  unsigned staggered = 0;  // tiles of it with which the launch begins, if these read one after another
};

// `resident_blocks`: blocks of this kernel that the device holds at once, for persistent kernels and gangs.
// `resident_clusters`: the same of its clusters, for staggered kernels; unless all blocks of one find room close to
// each other, there is room for less. `rows` are checked, not empty and those of one launch.
[[nodiscard]] Geometry geometry(const Specialization& specialization, const Rows& rows, int resident_blocks,
                                int resident_clusters = 0) noexcept;

// `workspace`: of so many bytes as workspace_bytes() says, for this launch alone while it runs.
[[nodiscard]] kernels::Arguments arguments(const Problem& problem, const Rows& rows, MaskedRows masked,
                                           const Geometry& geometry, void* workspace) noexcept;

// Zeroed device memory that every launch of the kernel on a device with so many resident blocks has enough of;
// 0 where it takes none.
[[nodiscard]] std::size_t workspace_bytes(const Specialization& specialization, int resident_blocks) noexcept;

}  // namespace jitsoftmax::plan
