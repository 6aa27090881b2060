#include "plan/launch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "plan/candidates.hpp"

namespace jitsoftmax::plan {
namespace {

[[noreturn]] void refuse(const Problem& problem, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "softmax of " + describe(problem) + ": " + why);
}

bool is_half(DType type) noexcept { return type == DType::f16 || type == DType::bf16; }

// Enumerators can be any value of their underlying type when they come through the C API.
bool known(const Problem& problem) noexcept {
  return problem.in <= DType::f64 && problem.out <= DType::f64 && problem.op <= Op::log_softmax &&
         problem.layout <= Layout::strided;
}

// One past the last byte that the rows touch, from the start of the buffer; nothing if it overflows.
bool extent(const Problem& problem, const Rows& rows, std::int64_t stride, DType type, std::int64_t& bytes) {
  std::int64_t outer = (rows.count - 1) / rows.inner;
  std::int64_t last = 0;
  std::int64_t slice = 0;
  return !__builtin_mul_overflow(outer, stride, &last) && !__builtin_mul_overflow(problem.cols, rows.inner, &slice) &&
         !__builtin_add_overflow(last, slice, &last) &&
         !__builtin_mul_overflow(last, std::int64_t{size_of(type)}, &bytes);
}

// Input and output are the same elements, or share none.
bool overlap_is_harmless(const Problem& problem, const Rows& rows, std::int64_t in_bytes, std::int64_t out_bytes) {
  const auto in = reinterpret_cast<std::uintptr_t>(rows.in);
  const auto out = reinterpret_cast<std::uintptr_t>(rows.out);
  if (in + static_cast<std::uintptr_t>(in_bytes) <= out || out + static_cast<std::uintptr_t>(out_bytes) <= in) {
    return true;
  }
  const bool same_steps =
      rows.in_stride * size_of(problem.in) == rows.out_stride * size_of(problem.out) || rows.count <= rows.inner;
  if (!same_steps) return false;
  if (in == out) return problem.in == problem.out;
  if (rows.count <= rows.inner) return false;
  // Two columns of slices side by side in rows of one pitch, such as two halves of one matrix.
  const auto pitch = static_cast<std::uintptr_t>(rows.in_stride * size_of(problem.in));
  const auto slice = static_cast<std::uintptr_t>(problem.cols * rows.inner);
  const std::uintptr_t in_slice = slice * static_cast<std::uintptr_t>(size_of(problem.in));
  const std::uintptr_t out_slice = slice * static_cast<std::uintptr_t>(size_of(problem.out));
  const std::uintptr_t shift = out > in ? (out - in) % pitch : (pitch - (in - out) % pitch) % pitch;
  return shift >= in_slice && pitch - shift >= out_slice;
}

std::int64_t resolved_stride(const Problem& problem, std::int64_t stride, std::int64_t packed, const char* name) {
  if (stride == 0) return packed;
  if (stride < packed) {
    refuse(problem, std::string(name) + " is " + std::to_string(stride) +
                        " elements, but a row (times Rows::inner) takes " + std::to_string(packed) +
                        "; pass at least that, or 0 for packed rows");
  }
  return stride;
}

void check_pointer(const Problem& problem, const void* pointer, DType type, const char* name) {
  if (pointer == nullptr) refuse(problem, std::string(name) + " is null, but there are rows to compute");
  if (reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(size_of(type)) != 0) {
    refuse(problem,
           std::string(name) + " is not aligned to its element type, " + std::to_string(size_of(type)) + " bytes");
  }
}

// Blocks a row: as many as hold it, or all that there is room for.
std::int64_t gang_of(const Specialization& s, int resident_blocks) noexcept {
  if (s.family != Family::split) return 1;
  const std::int64_t packets = std::max<std::int64_t>(s.cols / s.config.vector, 1);
  const std::int64_t of_block = std::int64_t{s.config.threads} * (s.config.elements / s.config.vector);
  return std::clamp<std::int64_t>((packets - 1) / of_block + 1, 1, std::max(resident_blocks, 1));
}

// Gangs that there is room for.
std::int64_t gangs(std::int64_t gang, int resident_blocks) noexcept {
  return std::max<std::int64_t>(resident_blocks / gang, 1);
}

}  // namespace

void check(const Problem& problem) {
  if (!known(problem)) {
    throw Error(ErrorCode::invalid_argument, "the problem's dtype, op or layout is not a value of its enumeration");
  }
  if (problem.cols < 0) refuse(problem, "the number of columns is negative");
  const bool converts =
      (is_half(problem.in) && problem.out == DType::f32) || (problem.in == DType::f32 && is_half(problem.out));
  if (problem.in != problem.out && !converts) {
    refuse(problem, "the types of input and output must be equal, or f16/bf16 on one side and f32 on the other");
  }
}

Rows check(const Problem& problem, const Rows& rows) {
  if (rows.count < 0) refuse(problem, "the number of rows, " + std::to_string(rows.count) + ", is negative");
  if (rows.in_stride < 0 || rows.out_stride < 0) refuse(problem, "a stride is negative");
  if (rows.inner < 1) refuse(problem, "Rows::inner is " + std::to_string(rows.inner) + ", but is at least 1");
  if (rows.inner != 1 && problem.layout == Layout::contiguous) {
    refuse(problem, "Rows::inner is " + std::to_string(rows.inner) +
                        ", but the problem has contiguous rows; prepare it with Layout::strided");
  }
  if (rows.count % rows.inner != 0) {
    refuse(problem,
           std::to_string(rows.count) + " rows are not a multiple of Rows::inner, " + std::to_string(rows.inner));
  }
  if (problem.cols == 0 || rows.count == 0) return rows;

  check_pointer(problem, rows.in, problem.in, "Rows::in");
  check_pointer(problem, rows.out, problem.out, "Rows::out");
  std::int64_t packed = 0;
  if (__builtin_mul_overflow(problem.cols, rows.inner, &packed))
    refuse(problem, "cols * Rows::inner overflows 64 bits");
  Rows resolved = rows;
  resolved.in_stride = resolved_stride(problem, rows.in_stride, packed, "Rows::in_stride");
  resolved.out_stride = resolved_stride(problem, rows.out_stride, packed, "Rows::out_stride");
  std::int64_t in_bytes = 0;
  std::int64_t out_bytes = 0;
  if (!extent(problem, resolved, resolved.in_stride, problem.in, in_bytes) ||
      !extent(problem, resolved, resolved.out_stride, problem.out, out_bytes)) {
    refuse(problem, "the size in bytes overflows 64 bits");
  }
  if (!overlap_is_harmless(problem, resolved, in_bytes, out_bytes)) {
    refuse(problem,
           "input and output overlap; pass the same pointer, stride and type for both (in place), or separate buffers");
  }
  return resolved;
}

Rows take_rows_of_launch(const Specialization& specialization, const Problem& problem, Rows& rest) noexcept {
  const kernels::Config& config = specialization.config;
  // A grid has at most 2^31 - 1 blocks on every device, and here whole clusters.
  const std::int64_t most = ((std::int64_t{1} << 31) - 1) / config.cluster * rows_of_tile(specialization);
  Rows part = rest;
  if (config.persistent || specialization.family == Family::split || rest.count <= most) {
    rest.count = 0;
    return part;
  }
  // Whole groups of `inner` rows side by side if there is room for one, or a piece of a group, of which `left` are
  // left.
  const std::int64_t left = rest.count % rest.inner != 0 ? rest.count % rest.inner : rest.inner;
  const std::int64_t before = rest.inner - left;
  part.count = most >= rest.inner ? most / rest.inner * rest.inner : std::min(most, left);
  const std::int64_t end = before + part.count;
  const auto elements = [&](std::int64_t stride) { return end / rest.inner * stride + end % rest.inner - before; };
  rest.in = static_cast<const std::byte*>(rest.in) + elements(rest.in_stride) * size_of(problem.in);
  rest.out = static_cast<std::byte*>(rest.out) + elements(rest.out_stride) * size_of(problem.out);
  rest.count -= part.count;
  return part;
}

Geometry geometry(const Specialization& specialization, const Rows& rows, int resident_blocks,
                  int resident_clusters) noexcept {
  const kernels::Config& config = specialization.config;
  const std::int64_t gang = gang_of(specialization, resident_blocks);
  std::int64_t tiles = (rows.count - 1) / rows_of_tile(specialization) + 1;
  if (config.persistent) tiles = std::min<std::int64_t>(tiles, std::max(resident_blocks, 1));
  if (specialization.family == Family::split) tiles = std::min(tiles, gangs(gang, resident_blocks)) * gang;

  Geometry geometry;
  geometry.grid = static_cast<unsigned>(tiles * config.cluster);
  geometry.cluster = static_cast<unsigned>(config.cluster);
  geometry.gang = static_cast<unsigned>(gang);
  geometry.block = static_cast<unsigned>(config.threads * config.rows);
  geometry.shared = static_cast<unsigned>(config.shared);
  geometry.at_once = static_cast<unsigned>(std::max(resident_blocks, 0)) / geometry.grid;
  if (config.staggered && tiles >= fewest_staggered_tiles(specialization)) {
    geometry.staggered = static_cast<unsigned>(std::max(resident_clusters, 0));
  }
  return geometry;
}

kernels::Arguments arguments(const Problem& problem, const Rows& rows, MaskedRows masked, const Geometry& geometry,
                             void* workspace) noexcept {
  return {.out = rows.out,
          .in = rows.in,
          .rows = rows.count,
          .cols = problem.cols,
          .out_stride = rows.out_stride,
          .in_stride = rows.in_stride,
          .inner = rows.inner,
          .scale = rows.scale,
          .zero_masked = masked == MaskedRows::zero ? 1 : 0,
          .gang = static_cast<int>(geometry.gang),
          .staggered = static_cast<int>(geometry.staggered),
          .workspace = workspace};
}

std::size_t workspace_bytes(const Specialization& specialization, int resident_blocks) noexcept {
  if (specialization.family != Family::split) return 0;
  const std::int64_t gang = gang_of(specialization, resident_blocks);
  const std::int64_t words = kernels::gang_words(static_cast<int>(gang), accumulator_bytes(specialization.in));
  return static_cast<std::size_t>(gangs(gang, resident_blocks) * words) * sizeof(std::uint64_t);
}

}  // namespace jitsoftmax::plan
