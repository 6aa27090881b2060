#include "plan/choice.hpp"

#include <algorithm>
#include <cstdint>

#include "plan/candidates.hpp"
#include "plan/variants.hpp"

namespace jitsoftmax::plan {
namespace {

// The widest access that cuts a packed row into whole packets.
int dividing_vector(const Problem& problem) noexcept {
  int vector = widest_vector(problem);
  while (problem.cols % vector != 0) vector /= 2;
  return vector;
}

Specialization built_in(const Problem& problem, bool deterministic) {
  if (problem.layout == Layout::strided) {
    const int warps = problem.cols >= 64 ? 8 : 1;
    return specialization(problem, Family::strided,
                          {.threads = warps, .rows = kernels::warp_size, .vector = 1, .elements = 8, .blocked = true});
  }
  // Without peeling, a wide access that does not divide the row would find few rows aligned to it.
  const int vector = deterministic ? dividing_vector(problem) : widest_vector(problem);
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

Bundle bundle_of(const Specialization& specialization, bool deterministic) {
  Specialization aligned = specialization;
  aligned.config.aligned = true;
  if (specialization.config.vector == 1) return {aligned};  // an element is always aligned
  Specialization any = specialization;
  any.config.peeled = !deterministic;
  // Rows of such a length are aligned only where their stride is padded.
  if (any.config.peeled && specialization.cols % specialization.config.vector != 0) return {any};
  return {aligned, any};
}

Bundle choose(const Problem& problem, const Arch&, const Variant& variant, bool deterministic) {
  const Specialization base = built_in(problem, deterministic);
  return bundle_of(variant.empty() ? base : point(problem, variant, base), deterministic);
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
