// A stand-in for libcuda: everything up to the launch runs without a GPU. It computes nothing; it keeps
// contexts, streams, captures, libraries and events as the driver's documentation says, and remembers
// what a real driver would only crash over (violations()). A test that links it has a libcuda.so.1.
//
// Two devices, of compute capability 9.0 at first.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_templates/config.cuh"

namespace jitsoftmax::stand_in {

constexpr int devices = 2;

// One cuLaunchKernel(Ex), or one of a graph's.
struct Launch {
  std::string kernel;  // its name in the library
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  unsigned grid_x = 0;
  kernels::Arguments arguments;
  bool plain = false;    // by cuLaunchKernel, which has no attributes; else by cuLaunchKernelEx, which say:
  unsigned cluster = 1;  // blocks
  bool cooperative = false;
  bool balanced = false;  // clusters are scheduled by load
  bool programmatic = false;
};

// A device holds twice its 132 multiprocessors of any kernel's blocks, and so many of those in clusters.
constexpr unsigned active_blocks_in_clusters = 224;

// Whether it answers how many clusters it holds; it does at first.
void know_clusters(bool does);

// From now on, as every device says: for engines that are made later.
void set_compute_capability(int major);

// Launches are always counted. While they are observed they are also checked and remembered, under a
// lock; it is on at first. Off is for measuring.
void observe(bool on);
[[nodiscard]] std::uint64_t launches();  // of this thread
[[nodiscard]] std::vector<Launch> take_launches();

// Calls of this thread that a launch makes besides: cuCtxGetCurrent, cuCtxGetDevice, push and pop.
[[nodiscard]] std::uint64_t context_calls();

// What must never happen, in words: code unloaded while it ran or while a graph had it, a launch of code
// that is gone, a destroyed context made current.
[[nodiscard]] std::vector<std::string> violations();

// The next so many cuLibraryLoadData answer with this error.
void fail_loads(int count, CUresult with);
[[nodiscard]] int loads();             // ever
[[nodiscard]] int loaded_libraries();  // now

// Contexts. A thread starts without one.
[[nodiscard]] CUcontext make_context(int device);  // not made current
void destroy_context(CUcontext context);
void set_current(CUcontext context);
[[nodiscard]] CUcontext current_context();
[[nodiscard]] CUcontext primary_context(int device);  // retained for the rest of the process
[[nodiscard]] int contexts_on(int device);            // that were ever made there

// While on, observed launches stay in the driver on the host's side; entered(): how many are there.
void hold_launches(bool on);
[[nodiscard]] int entered();

// What is launched on a stream from now on runs until finish(). A graph's launches count too.
void hold(CUstream stream);
void finish(CUstream stream);

}  // namespace jitsoftmax::stand_in
