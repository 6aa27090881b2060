#include "plan/choice.hpp"

#include <algorithm>
#include <cstdint>

#include "plan/candidates.hpp"

namespace jitsoftmax::plan {
namespace {

// The widest access that cuts a packed row into whole packets.
int dividing_vector(const Problem& problem) noexcept {
  int vector = widest_vector(problem);
  while (problem.cols % vector != 0) vector /= 2;
  return vector;
}

Specialization built_in(const Problem& problem) {
  if (problem.layout == Layout::strided) {
    const int warps = problem.cols >= 64 ? 8 : 1;
    return specialization(problem, Family::strided,
                          {.threads = warps, .rows = kernels::warp_size, .vector = 1, .elements = 8, .blocked = true});
  }
  const int vector = dividing_vector(problem);
  if (const auto config = registers_config(problem, vector)) return specialization(problem, Family::registers, *config);
  // As many threads and packets in flight as the registers allow.
  const bool wide = problem.in == DType::f64;
  return specialization(
      problem, Family::looped,
      {.threads = wide ? 512 : 1024, .vector = vector, .elements = vector == 8 ? 16 : 4 * vector, .blocked = true});
}

bool is_aligned(const void* pointer, std::int64_t stride, DType type, int vector) noexcept {
  const auto bytes = static_cast<std::uintptr_t>(vector * size_of(type));
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0 && stride % vector == 0;
}

}  // namespace

Bundle choose(const Problem& problem, const Arch&, const Variant& variant) {
  const Specialization any = variant.empty() ? built_in(problem) : point(problem, variant, built_in(problem));
  Specialization aligned = any;
  aligned.config.aligned = true;
  if (any.config.vector == 1) return {aligned};  // an element is always aligned
  return {aligned, any};
}

bool accepts(const Specialization& specialization, const Rows& rows) noexcept {
  const kernels::Config& config = specialization.config;
  return !config.aligned || config.vector == 1 ||
         (is_aligned(rows.in, rows.in_stride, specialization.in, config.vector) &&
          is_aligned(rows.out, rows.out_stride, specialization.out, config.vector));
}

std::size_t select(const Bundle& bundle, const Rows& rows) noexcept {
  const auto found =
      std::find_if(bundle.begin(), bundle.end(), [&](const Specialization& s) { return accepts(s, rows); });
  return static_cast<std::size_t>(std::min(found, bundle.end() - 1) - bundle.begin());
}

}  // namespace jitsoftmax::plan
