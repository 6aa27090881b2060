// Rows side by side, one a lane.
#include <algorithm>
#include <cstddef>

#include "host/cover.hpp"

namespace jitsoftmax::host {
namespace {

// Below it, the fixed costs of a row are more than those of gathering rows into lanes: measured.
// The kernels along a row want at least group_lanes elements.
constexpr std::int64_t short_row(DType in) { return in == DType::f64 ? group_lanes : 28; }

constexpr std::int64_t tiles_of(std::int64_t rows) { return (rows + tile_lanes - 1) / tile_lanes; }

// A tile of scratch in the second-level cache.
constexpr std::int64_t tile_bytes = std::int64_t{256} * 1024;

}  // namespace

struct Across::Place {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): hot, and the offsets are written before they are read
  Place(const Across& across, std::int64_t unit, std::int64_t chunk) noexcept {
    const Rows& rows = across.call_.rows;
    const std::int64_t inner = rows.inner;
    const std::int64_t begin = chunk * across.chunk_length_;
    const std::int64_t length = std::min(across.chunk_length_, across.call_.problem.cols - begin);
    in = out = begin * inner;
    int lanes = 0;
    if (across.neighbours_) {
      const std::int64_t slab = unit / across.slab_tiles_;
      const std::int64_t first = unit % across.slab_tiles_ * tile_lanes;
      const std::int64_t rest = std::min(inner - first, rows.count - (slab * inner + first));
      lanes = static_cast<int>(std::min<std::int64_t>(tile_lanes, rest));
      in += slab * rows.in_stride + first;
      out += slab * rows.out_stride + first;
    } else {
      const std::int64_t first = unit * tile_lanes;
      lanes = static_cast<int>(std::min<std::int64_t>(tile_lanes, rows.count - first));
      for (int lane = 0; lane < lanes; ++lane) {
        const std::int64_t slab = (first + lane) / inner;
        const std::int64_t position = (first + lane) % inner;
        in_offsets[lane] = slab * rows.in_stride + position;
        out_offsets[lane] = slab * rows.out_stride + position;
      }
    }
    in_tile = {length, inner, across.neighbours_ ? nullptr : in_offsets, lanes};
    out_tile = {length, inner, across.neighbours_ ? nullptr : out_offsets, lanes};
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() = default;

  std::int64_t in;  // of the chunk's first element
  std::int64_t out;
  Tile in_tile;
  Tile out_tile;
  std::int64_t in_offsets[tile_lanes];
  std::int64_t out_offsets[tile_lanes];
};

Across::Across(const Call& call) noexcept : call_(call), neighbours_(call.rows.inner >= group_lanes) {
  const std::int64_t cols = call.problem.cols;
  chunk_length_ = std::min<std::int64_t>(cols, tile_bytes / tile_lanes / call.accumulator_bytes);
  chunks_ = (cols + chunk_length_ - 1) / chunk_length_;
  const std::int64_t inner = call.rows.inner;
  const std::int64_t count = call.rows.count;
  slab_tiles_ = tiles_of(inner);
  units_ = neighbours_ ? count / inner * slab_tiles_ + tiles_of(count % inner) : tiles_of(count);
}

bool Across::suits(const Problem& problem, const Rows& rows) noexcept {
  return rows.inner > 1 || problem.cols < short_row(problem.in);
}

std::int64_t Across::scratch_bytes() const noexcept { return chunk_length_ * tile_lanes * call_.accumulator_bytes; }

void Across::reduce(const Place& place, void* y, bool keep, Partial* result) const {
  const Tile& tile = place.in_tile;
  call_.in.load_tile(y, call_.input(place.in), tile, call_.rows.scale);
  for (int group = 0; group < tile.groups(); ++group) {
    void* at = static_cast<char*>(y) + group * tile.length * group_lanes * call_.accumulator_bytes;
    double maximum[group_lanes];
    double subtrahends[group_lanes];
    double sum[group_lanes];
    call_.accumulator.maxima(at, tile.length, maximum);
    std::transform(maximum, maximum + group_lanes, subtrahends, subtrahend);
    call_.accumulator.sums(at, tile.length, subtrahends, sum, keep);
    for (int l = 0; l < group_lanes; ++l) result[group * group_lanes + l] = {maximum[l], sum[l]};
  }
}

void Across::whole(std::int64_t unit, void* y) const {
  const Place place(*this, unit, 0);
  Partial partials[tile_lanes];
  reduce(place, y, !call_.log(), partials);
  Shift shifts[tile_lanes];
  for (int l = 0; l < place.out_tile.lanes; ++l) {
    shifts[l] = call_.shift(subtrahend(partials[l].maximum), partials[l].sum);
  }
  call_.out.store_tile[call_.log()](call_.output(place.out), y, place.out_tile, shifts);
}

void Across::partial(std::int64_t unit, std::int64_t chunk, void* y, Partial* result) const {
  reduce(Place(*this, unit, chunk), y, false, result);
}

void Across::finish(std::int64_t unit, std::int64_t chunk, void* y, const Partial*, const Partial* merged) const {
  const Place place(*this, unit, chunk);
  const Tile& tile = place.in_tile;
  call_.in.load_tile(y, call_.input(place.in), tile, call_.rows.scale);
  double maximum[tile_lanes] = {};
  Shift shifts[tile_lanes];
  for (int l = 0; l < tile.lanes; ++l) {
    maximum[l] = subtrahend(merged[l].maximum);
    shifts[l] = call_.shift(maximum[l], merged[l].sum);
  }
  for (int group = 0; group < tile.groups() && !call_.log(); ++group) {
    void* at = static_cast<char*>(y) + group * tile.length * group_lanes * call_.accumulator_bytes;
    double unused[group_lanes];
    call_.accumulator.sums(at, tile.length, maximum + std::ptrdiff_t{group} * group_lanes, unused, true);
  }
  call_.out.store_tile[call_.log()](call_.output(place.out), y, place.out_tile, shifts);
}

}  // namespace jitsoftmax::host
