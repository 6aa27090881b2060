// How rows are cut into pieces of work for the kernels. How a row is cut depends on its length and
// the layout alone, and partial results are merged in order, so its bits do not depend on threads.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/problem.hpp>
#include <limits>

#include "host/kernels.hpp"

namespace jitsoftmax::host {

// One call: what to compute, and the kernels for its types.
struct Call {
  Call(const Problem& problem, const Rows& rows, MaskedRows masked, const Kernels& kernels);

  [[nodiscard]] bool log() const noexcept { return problem.op == Op::log_softmax; }
  [[nodiscard]] const void* input(std::int64_t offset) const noexcept;
  [[nodiscard]] void* output(std::int64_t offset) const noexcept;
  // What to do to elements of a row with this sum of exp(x - maximum).
  [[nodiscard]] Shift shift(double maximum, double sum) const noexcept;

  Problem problem;
  Rows rows;
  MaskedRows masked;
  const Kernels::Element& in;
  const Kernels::Element& out;
  const Kernels::Accumulator& accumulator;
  int accumulator_bytes;
  bool prefetch;  // the input comes from memory
  bool stream;    // the output goes there
};

// The maximum, and the sum of exp(x - maximum), over a part of a row. A part with nothing above
// -inf has the sum 0, or NaN if a NaN is in it.
struct Partial {
  double maximum;
  double sum;
};

// What is subtracted from elements with this maximum: -inf - 0 stays -inf, where -inf - (-inf) would
// be NaN.
[[nodiscard]] constexpr double subtrahend(double maximum) noexcept {
  return maximum == -std::numeric_limits<double>::infinity() ? 0 : maximum;
}

// Merges the partials of one row, which are `stride` apart.
[[nodiscard]] Partial merge(const Partial* partials, std::int64_t count, std::int64_t stride) noexcept;

// A unit is a set of rows that are worked on together, and a chunk a part of their length. A unit of
// one chunk is done by whole(); of several, by partial() for each, and then finish() for each with
// its own partials and the merged ones. `y` is scratch of scratch_bytes(); partials are one a lane.

// Long rows, whose elements are neighbours: a unit is a row.
class Along {
 public:
  explicit Along(const Call& call) noexcept;

  [[nodiscard]] std::int64_t units() const noexcept { return call_.rows.count; }
  [[nodiscard]] std::int64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] static constexpr int lanes() noexcept { return 1; }
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept;

  void whole(std::int64_t unit, void* y) const;
  void partial(std::int64_t unit, std::int64_t chunk, void* y, Partial* result) const;
  void finish(std::int64_t unit, std::int64_t chunk, void* y, const Partial* own, const Partial* merged) const;

 private:
  [[nodiscard]] std::int64_t length(std::int64_t chunk) const noexcept;

  const Call& call_;
  std::int64_t chunk_length_;
  std::int64_t chunks_;
  bool resume_;  // partial() leaves its exponentials in the output, and finish() starts from them
};

// Short rows, and rows with elements far apart: a unit is a tile of rows side by side.
class Across {
 public:
  explicit Across(const Call& call) noexcept;

  // Whether rows are better worked on side by side than one after the other.
  [[nodiscard]] static bool suits(const Problem& problem, const Rows& rows) noexcept;

  [[nodiscard]] std::int64_t units() const noexcept { return units_; }
  [[nodiscard]] std::int64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] static constexpr int lanes() noexcept { return tile_lanes; }
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept;

  void whole(std::int64_t unit, void* y) const;
  void partial(std::int64_t unit, std::int64_t chunk, void* y, Partial* result) const;
  void finish(std::int64_t unit, std::int64_t chunk, void* y, const Partial* own, const Partial* merged) const;

 private:
  struct Place;  // a unit's chunk in memory
  // Loads a chunk and finds each lane's partial; y then holds exp(x - maximum) if `keep`.
  void reduce(const Place& place, void* y, bool keep, Partial* result) const;

  const Call& call_;
  bool neighbours_;  // the rows of a tile are neighbours in memory; else each has an offset
  std::int64_t chunk_length_;
  std::int64_t chunks_;
  std::int64_t slab_tiles_;  // tiles that make up the `inner` rows of one slab
  std::int64_t units_;
};

}  // namespace jitsoftmax::host
