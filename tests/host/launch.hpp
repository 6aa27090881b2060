// A launch on the CPU: the same checks, choice, geometry and arguments as a launch on a device.
#pragma once

#include <cstdint>

#include "plan/choice.hpp"
#include "plan/launch.hpp"

namespace jitsoftmax::host_test {

// Runs the kernel of the bundle that serves the rows; returns which one. Throws ExecutionError for
// what the kernel does wrong, and a logic_error that names the kernel if it was not compiled.
const plan::Specialization& launch(const plan::Bundle& bundle, const Problem& problem, const Rows& rows,
                                   MaskedRows masked, std::uint64_t seed);

// Prints how many different specializations, launches and rows this process has run so far.
void report_counts();

}  // namespace jitsoftmax::host_test
