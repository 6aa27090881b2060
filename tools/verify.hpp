// Verifies one whole array in host memory (see src/tune/verify.hpp for what is right).
#pragma once

#include <jitsoftmax/engine.hpp>

#include "tune/verify.hpp"
#include "work.hpp"

namespace jitsoftmax::tools {

using tune::Verdict;

// `work.out` holds the result. `threads` as in tune::verify. Throws Interrupted.
[[nodiscard]] Verdict verify(const Work& work, MaskedRows masked, int threads = 0);

}  // namespace jitsoftmax::tools
