// Rows whose elements are neighbours, one after the other.
#include <cmath>

#include "host/cover.hpp"

namespace jitsoftmax::host {
namespace {

constexpr std::int64_t whole_bytes = std::int64_t{256} * 1024;  // of scratch, in the second-level cache
constexpr std::int64_t chunk_bytes = std::int64_t{32} * 1024;   // in the first-level cache

constexpr std::int64_t resume_bytes = std::int64_t{8} * 1024 * 1024;  // of a row, in the last-level cache

constexpr std::int64_t groups_of(std::int64_t n) { return (n + group_lanes - 1) / group_lanes; }

}  // namespace

Along::Along(const Call& call) noexcept : call_(call) {
  const std::int64_t cols = call.problem.cols;
  chunk_length_ = cols * call.accumulator_bytes <= whole_bytes ? cols : chunk_bytes / call.accumulator_bytes;
  chunks_ = cols / chunk_length_;
  const bool same_type = size_of(call.problem.out) == call.accumulator_bytes;
  resume_ = !call.log() && same_type && cols * call.accumulator_bytes <= resume_bytes;
}

// The last chunk is the longest, so that none is shorter than a vector.
std::int64_t Along::length(std::int64_t chunk) const noexcept {
  return chunk + 1 < chunks_ ? chunk_length_ : call_.problem.cols - chunk * chunk_length_;
}

// One group more, since stores read full vectors.
std::int64_t Along::scratch_bytes() const noexcept {
  return (groups_of(length(chunks_ - 1)) + 1) * group_lanes * call_.accumulator_bytes;
}

void Along::whole(std::int64_t unit, void* y) const {
  const Rows& rows = call_.rows;
  const std::int64_t cols = call_.problem.cols;
  const double maximum = subtrahend(call_.in.load(y, call_.input(unit * rows.in_stride), cols, rows.scale));
  const bool prefetch = call_.prefetch && unit + 1 < rows.count;
  const void* next = prefetch ? call_.input((unit + 1) * rows.in_stride) : nullptr;
  const double sum = call_.accumulator.sum(y, groups_of(cols), maximum, !call_.log(), next);
  call_.out.store[call_.log()](call_.output(unit * rows.out_stride), y, cols, call_.shift(maximum, sum), call_.stream);
}

void Along::partial(std::int64_t unit, std::int64_t chunk, void* y, Partial* result) const {
  const std::int64_t begin = chunk * chunk_length_;
  const std::int64_t n = length(chunk);
  const double maximum = call_.in.load(y, call_.input(unit * call_.rows.in_stride + begin), n, call_.rows.scale);
  *result = {maximum, call_.accumulator.sum(y, groups_of(n), subtrahend(maximum), resume_, nullptr)};
  if (resume_) call_.out.store[0](call_.output(unit * call_.rows.out_stride + begin), y, n, {0, 1}, false);
}

void Along::finish(std::int64_t unit, std::int64_t chunk, void* y, const Partial* own, const Partial* merged) const {
  const Rows& rows = call_.rows;
  const std::int64_t begin = chunk * chunk_length_;
  const std::int64_t n = length(chunk);
  const double maximum = subtrahend(merged->maximum);
  Shift shift = call_.shift(maximum, merged->sum);
  void* out = call_.output(unit * rows.out_stride + begin);
  if (resume_) {
    call_.out.load(y, out, n, 1);
    shift.factor *= std::exp(own->maximum - maximum);
  } else {
    call_.in.load(y, call_.input(unit * rows.in_stride + begin), n, rows.scale);
    if (!call_.log()) call_.accumulator.sum(y, groups_of(n), maximum, true, nullptr);
  }
  call_.out.store[call_.log()](out, y, n, shift, call_.stream && !resume_);
}

}  // namespace jitsoftmax::host
