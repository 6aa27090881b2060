#include "verify.hpp"

#include "interrupt.hpp"

namespace jitsoftmax::tools {

Verdict verify(const Work& work, MaskedRows masked, int threads) {
  Rows rows;
  rows.in = work.in;
  rows.out = work.out;
  rows.count = work.split.outer * work.split.inner;
  rows.inner = work.split.inner;
  rows.scale = work.scale;
  const Verdict verdict = tune::verify(work.problem, rows, masked, threads, [] { return interrupted() != 0; });
  stop_if_interrupted();
  return verdict;
}

}  // namespace jitsoftmax::tools
