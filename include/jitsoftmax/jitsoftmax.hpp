/// @file
/// libjitsoftmax: row softmax on NVIDIA GPUs, specialized for the row length and element type at
/// run time. The one include that an application needs.
///
///     jitsoftmax::Engine engine;
///     jitsoftmax::Kernel kernel = engine.prepare({.cols = 4096});
///     kernel.launch({.out = y, .in = x, .count = rows}, stream);
#pragma once

#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/error.hpp>
#include <jitsoftmax/kernel.hpp>
#include <jitsoftmax/problem.hpp>
