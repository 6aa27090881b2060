// The GPU's execution model on the CPU: a grid of blocks, whose threads are fibers. It defines the
// functions of kernels::cpu that device.cuh declares; a new primitive is one declaration there and
// one function here.
//
// It is stricter than the hardware, which lets many errors pass most of the time. Threads run in an
// order that a seed shuffles; whatever depends on the order, or on a thread that never arrives, is
// an ExecutionError with the thread's coordinates.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

#include "plan/launch.hpp"

namespace jitsoftmax::host_test {

// What a kernel did wrong: a barrier or a shuffle that not all threads reach, lanes that disagree on
// a shuffle, a race, an access outside the block's shared memory or one that is not aligned, an access to global
// memory while the kernel before may be running.
class ExecutionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `kernel` in every thread of the grid; blocks run in parallel on the CPU's cores. Throws the
// error of the first block that fails. Any number of threads of the host may call at once.
void run_grid(const plan::Geometry& geometry, const std::function<void()>& kernel, std::uint64_t seed);

}  // namespace jitsoftmax::host_test
