#include "plan/variants.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "plan/candidates.hpp"

namespace jitsoftmax::plan {
namespace {

struct NamedPoint {
  std::string_view name;
  Family family;
  kernels::Config config;  // vector 0: the widest; elements 0: one packet
  bool runtime_columns = false;
};
// The versions of the lesson, the baseline and the kernel that serves any number of columns.
constexpr std::array<NamedPoint, 7> named_points{{
    {"generic", Family::looped, {.threads = 256, .vector = 0, .elements = 0, .blocked = true}, true},
    {"safe3", Family::safe, {.threads = 256, .vector = 1, .elements = 4, .blocked = true}},
    {"v0", Family::looped, {.threads = 1, .rows = 128, .vector = 1, .elements = 1}},
    {"v1", Family::looped, {.threads = 256, .vector = 1, .elements = 1}},
    {"v2", Family::looped, {.threads = 256, .vector = 0, .elements = 0}},
    {"v3", Family::registers, {}},
    {"v4", Family::looped, {.threads = 256, .vector = 0, .elements = 0, .persistent = true}},
}};

[[noreturn]] void refuse(const Problem& problem, const Variant& variant, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "variant " + (variant.name.empty() ? "given by parameters" : variant.name) +
                                               " cannot serve " + describe(problem) + ": " + why);
}

// Columns of a thread, or packets, that are more than any family takes.
constexpr std::int64_t beyond_any_use = 257;

// As many as the row asks for where it is held between one read and one write, else four packets.
int elements_for(const Problem& problem, Family family, const kernels::Config& config) {
  constexpr int widest = 16;  // elements an access; the product with more could overflow
  if (config.vector < 1 || config.vector > widest || config.threads < 1 || config.cluster < 1) return config.elements;
  if (!reads_once(family)) return 4 * config.vector;
  const std::int64_t packets = is_strided(family) ? problem.cols : problem.cols / config.vector;
  const std::int64_t pieces = family == Family::staged ? std::max(config.pieces, 1) : 1;
  const std::int64_t a_round = std::int64_t{config.threads} * config.cluster * pieces;
  const std::int64_t rounds = std::max<std::int64_t>((packets - 1) / a_round + 1, 1) * pieces;
  return config.vector * static_cast<int>(std::min<std::int64_t>(rounds, beyond_any_use));
}

Specialization named(const Problem& problem, const Variant& variant) {
  const auto found = std::find_if(named_points.begin(), named_points.end(),
                                  [&](const NamedPoint& p) { return p.name == variant.name; });
  if (found == named_points.end()) {
    std::string known;
    for (const std::string& name : variant_names()) known += " " + name;
    throw Error(ErrorCode::invalid_argument, "unknown variant '" + variant.name + "'; known:" + known);
  }
  if (found->family == Family::registers) {
    // As many threads as leave each few packets, and no more than a block has.
    const int vector = widest_vector(problem);
    kernels::Config config{.threads = 32, .rows = 4, .vector = vector};
    while (config.threads < 1024 && elements_for(problem, Family::registers, config) > 2 * vector) {
      config.threads *= 2;
      config.rows = std::max(1, 128 / config.threads);
    }
    config.elements = elements_for(problem, Family::registers, config);
    const Specialization result = specialization(problem, Family::registers, config);
    if (config.elements > most_elements_in_registers(problem, false, config.threads)) {
      refuse(problem, variant, "the row does not fit in a block's registers");
    }
    return result;
  }
  kernels::Config config = found->config;
  if (config.vector == 0) config.vector = widest_vector(problem);
  if (config.elements == 0) config.elements = config.vector * (config.blocked ? 4 : 1);
  Specialization result = specialization(problem, found->family, config);
  if (found->runtime_columns) result.cols = 0;
  return result;
}

}  // namespace

Specialization generic(const Problem& problem) {
  Specialization result =
      problem.layout == Layout::contiguous
          ? named(problem, {.name = "generic"})
          : specialization(problem, Family::strided,
                           {.threads = 8, .rows = kernels::warp_size, .elements = 8, .blocked = true});
  result.cols = problem.cols;
  return result;
}

Specialization point(const Problem& problem, const Variant& variant, const Specialization& base) {
  Specialization result = base;
  if (problem.layout == Layout::contiguous && !variant.name.empty()) result = named(problem, variant);
  if (problem.layout == Layout::strided && !variant.name.empty()) {
    if (variant.name != "generic") refuse(problem, variant, "it reads rows whose elements are neighbours");
    result = generic(problem);
    result.cols = 0;
  }

  kernels::Config config = result.config;
  if (variant.family) {
    const auto family = family_named(*variant.family);
    if (!family)
      refuse(problem, variant,
             "'" + *variant.family +
                 "' is no family; known: safe looped registers staged split counted strided strided_registers "
                 "strided_staged");
    result.family = *family;
    config.blocked = !reads_once(*family);
    config.pieces = waits_in_shared_memory(*family) ? 2 : 0;
    config.packed = false;
    config.low_latency = false;
    config.staggered = false;
  }
  if (is_strided(result.family) != (problem.layout == Layout::strided)) {
    refuse(problem, variant, "the strided families serve strided layouts, and no other family does");
  }
  // The base's cluster and its residency go with its threads.
  if (variant.family || variant.threads) {
    config.cluster = 1;
    config.resident = 0;
    config.low_latency = false;
  }
  if (variant.threads || variant.cluster) config.staggered = false;
  if (variant.threads) config.threads = *variant.threads;
  if (variant.vector) config.vector = *variant.vector;
  if (variant.cluster) config.cluster = *variant.cluster;
  if (variant.pieces) config.pieces = *variant.pieces;
  if (variant.resident) config.resident = *variant.resident;
  if (variant.packed) config.packed = *variant.packed;
  if (variant.low_latency) config.low_latency = *variant.low_latency;
  if (variant.staggered) config.staggered = *variant.staggered;
  if (variant.rows) {
    config.rows = *variant.rows;
  } else if (variant.threads && !is_strided(result.family)) {
    config.rows = config.cluster > 1 ? 1 : std::max(1, 128 / std::max(config.threads, 1));
  }
  if (variant.elements) {
    config.elements = *variant.elements;
  } else if (!variant.empty() && (variant.name.empty() || variant.threads || variant.vector)) {
    config.elements = elements_for(problem, result.family, config);
  }
  const std::int64_t cols = result.cols;
  result = specialization(problem, result.family, config);
  result.cols = reads_once(result.family) || result.family == Family::split ? problem.cols : cols;
  if (const std::string why = illegal(result); !why.empty()) refuse(problem, variant, why);
  return result;
}

Variant variant_of(const Specialization& specialization) {
  const kernels::Config& config = specialization.config;
  Variant variant;
  variant.family = std::string(name_of(specialization.family));
  variant.threads = config.threads;
  variant.rows = config.rows;
  variant.cluster = config.cluster;
  variant.vector = config.vector;
  variant.elements = config.elements;
  variant.pieces = config.pieces;
  variant.resident = config.resident;
  variant.packed = config.packed;
  variant.low_latency = config.low_latency;
  variant.staggered = config.staggered;
  return variant;
}

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  names.reserve(named_points.size());
  for (const NamedPoint& point : named_points) names.emplace_back(point.name);
  return names;
}

}  // namespace jitsoftmax::plan
