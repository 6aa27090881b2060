// Checks a result against an independent reference: softmax in f64, in two plain passes with
// std::exp. It shares no code with the kernels, and needs no GPU.
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
#include <functional>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <vector>

namespace jitsoftmax::tune {

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

// `rows`: packed rows of host memory, `out` holds the result. Uses up to `threads` threads (0: as
// many as there are cores), and its answer does not depend on how many. Where `stop`, asked before
// every row and from these threads, says so, the rest is left out.
[[nodiscard]] Verdict verify(const Problem& problem, const Rows& rows, MaskedRows masked, int threads = 0,
                             const std::function<bool()>& stop = {});

// The same for several results of one input: the reference is computed once. It takes 8 bytes an element.
class Reference {
 public:
  // `rows`: packed rows of host memory, of which `out` is not looked at; they are not kept.
  Reference(const Problem& problem, const Rows& rows, MaskedRows masked, int threads = 0);

  // `out`: packed rows of host memory.
  [[nodiscard]] Verdict compare(const void* out, int threads = 0) const;

 private:
  Problem problem_;
  std::vector<double> expected_;  // in the order of memory
};

}  // namespace jitsoftmax::tune
