// Rows whose elements are neighbours, one after the other.
#include <algorithm>

#include "host/cover.hpp"

namespace jitsoftmax::host {
namespace {

constexpr std::int64_t whole_bytes = 256 * 1024;  // of scratch, in the second-level cache
constexpr std::int64_t chunk_bytes = 32 * 1024;   // in the first-level cache

constexpr std::int64_t groups_of(std::int64_t n) { return (n + group_lanes - 1) / group_lanes; }

}  // namespace

Along::Along(const Call& call) noexcept : call_(call) {
  const std::int64_t cols = call.problem.cols;
  chunk_length_ = cols * call.accumulator_bytes <= whole_bytes ? cols : chunk_bytes / call.accumulator_bytes;
  chunks_ = (cols + chunk_length_ - 1) / chunk_length_;
}

// One group more, since stores read full vectors.
std::int64_t Along::scratch_bytes() const noexcept {
  return (groups_of(chunk_length_) + 1) * group_lanes * call_.accumulator_bytes;
}

void Along::whole(std::int64_t unit, void* y) const {
  const Rows& rows = call_.rows;
  const std::int64_t cols = call_.problem.cols;
  call_.in.load(y, call_.input(unit * rows.in_stride), cols, rows.scale);
  const double maximum = subtrahend(call_.accumulator.maximum(y, groups_of(cols)));
  const double sum = call_.accumulator.sum(y, groups_of(cols), maximum, !call_.log());
  call_.out.store[call_.log()](call_.output(unit * rows.out_stride), y, cols, call_.shift(maximum, sum), call_.stream);
}

void Along::partial(std::int64_t unit, std::int64_t chunk, void* y, Partial* result) const {
  const std::int64_t begin = chunk * chunk_length_;
  const std::int64_t n = std::min(chunk_length_, call_.problem.cols - begin);
  call_.in.load(y, call_.input(unit * call_.rows.in_stride + begin), n, call_.rows.scale);
  const double maximum = call_.accumulator.maximum(y, groups_of(n));
  *result = {maximum, call_.accumulator.sum(y, groups_of(n), subtrahend(maximum), false)};
}

void Along::finish(std::int64_t unit, std::int64_t chunk, void* y, const Partial* merged) const {
  const Rows& rows = call_.rows;
  const std::int64_t begin = chunk * chunk_length_;
  const std::int64_t n = std::min(chunk_length_, call_.problem.cols - begin);
  const double maximum = subtrahend(merged->maximum);
  call_.in.load(y, call_.input(unit * rows.in_stride + begin), n, rows.scale);
  if (!call_.log()) call_.accumulator.sum(y, groups_of(n), maximum, true);
  call_.out.store[call_.log()](call_.output(unit * rows.out_stride + begin), y, n, call_.shift(maximum, merged->sum),
                               call_.stream);
}

}  // namespace jitsoftmax::host
