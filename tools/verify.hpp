// Checks a result against an independent reference: softmax in f64, in two plain passes with
// std::exp. It shares no code with the library.
//
// What is right:
//   f32          |error| <= 1e-5 |ref| + 1.5e-45 (one subnormal step)
//   f64          |error| <= 1e-13 |ref| + 4.9e-324
//   f16, bf16    within 1 ulp of the reference rounded to the type
//   log_softmax  |error| <= tolerance * max(1, |ref|), tolerance as above (1e-5 for f16 and bf16 too, or 1
//                ulp where that is more): it is (x - m) - log(d), so that an error relative to d is
//                an absolute one here
//   NaN and infinities must be where the reference has them.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>

#include "work.hpp"

namespace jitsoftmax::tools {

struct Verdict {
  std::int64_t elements = 0;  // that were compared
  std::int64_t wrong = 0;
  // The element with the largest error; the first of them where several share it.
  double ratio =
      0;  // its error over what is allowed: above 1 is wrong; infinite where NaN or an infinity is not matched
  std::int64_t index = 0;  // in the order of memory
  double got = 0;
  double expected = 0;
};

// `work.out` holds the result. Uses up to `threads` threads (0: as
// many as there are cores), and its answer does not depend on how many. Throws Interrupted.
[[nodiscard]] Verdict verify(const Work& work, MaskedRows masked, int threads = 0);

}  // namespace jitsoftmax::tools
