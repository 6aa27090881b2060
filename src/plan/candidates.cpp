#include "plan/candidates.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace jitsoftmax::plan {
namespace {

constexpr int most_threads = 1024;  // of a block, on every device
constexpr int most_elements = 64;   // of a thread: more only costs compile time and spills

// f64 takes two registers an element.
int most_elements_in_registers(const Problem& problem) noexcept { return problem.in == DType::f64 ? 8 : 32; }

int planned_shared(Family family, const kernels::Config& config, DType in) noexcept {
  if (family == Family::strided) return config.threads * config.rows * 2 * accumulator_bytes(in);
  return kernels::merge_bytes(config, accumulator_bytes(in));
}

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

Specialization named(const Problem& problem, const Variant& variant) {
  const auto found = std::find_if(named_points.begin(), named_points.end(),
                                  [&](const NamedPoint& p) { return p.name == variant.name; });
  if (found == named_points.end()) {
    std::string known;
    for (const std::string& name : variant_names()) known += " " + name;
    throw Error(ErrorCode::invalid_argument, "unknown variant '" + variant.name + "'; known:" + known);
  }
  if (found->family == Family::registers) {
    const auto config = registers_config(problem, widest_vector(problem));
    if (!config) refuse(problem, variant, "the row does not fit in a block's registers");
    return specialization(problem, Family::registers, *config);
  }
  kernels::Config config = found->config;
  if (config.vector == 0) config.vector = widest_vector(problem);
  if (config.elements == 0) config.elements = config.vector * (config.blocked ? 4 : 1);
  Specialization result = specialization(problem, found->family, config);
  if (found->runtime_columns) result.cols = 0;
  return result;
}

}  // namespace

std::string illegal(const Specialization& s) {
  const kernels::Config& c = s.config;
  const int threads = c.threads;
  const int widest_type = std::max(size_of(s.in), size_of(s.out));
  if (threads < 1 || c.rows < 1 || c.vector < 1 || c.elements < 1) return "every parameter is at least 1";
  if (threads > most_threads || c.rows > most_threads || threads * c.rows > most_threads) {
    return "a block has more than 1024 threads";
  }
  if (threads * c.rows % kernels::warp_size != 0) return "threads * rows is not a multiple of 32";
  if (c.elements > most_elements) return "more than 64 elements a thread";
  if (c.elements % c.vector != 0) return "the elements a thread are not a multiple of the vector width";
  if (c.persistent && s.family != Family::looped) return "only the looped family is persistent";
  if (s.family == Family::strided) {
    return c.rows == kernels::warp_size && c.vector == 1 ? "" : "the strided family takes 32 rows a block and vector 1";
  }
  if (threads < kernels::warp_size ? !std::has_single_bit(static_cast<unsigned>(threads))
                                   : threads % kernels::warp_size != 0) {
    return "the threads a row are neither a power of two below 32 nor a multiple of 32";
  }
  if (!std::has_single_bit(static_cast<unsigned>(c.vector)) || c.vector * widest_type > 16) {
    return "the vector width is not a power of two of at most 16 bytes";
  }
  if (s.family == Family::registers && (s.cols == 0 || s.cols > std::int64_t{threads} * c.elements)) {
    return "the row does not fit in the registers of its threads";
  }
  return "";
}

Specialization specialization(const Problem& problem, Family family, const kernels::Config& config) {
  Specialization result{
      .family = family, .config = config, .cols = problem.cols, .in = problem.in, .out = problem.out, .op = problem.op};
  result.config.aligned = false;
  // Left to itself the assembler holds f64 kernels to 64 registers, for occupancy, and spills.
  if (problem.in == DType::f64 && config.resident == 0) result.config.resident = 1;
  result.config.shared = planned_shared(family, config, problem.in);
  return result;
}

std::optional<kernels::Config> registers_config(const Problem& problem, int vector) {
  const std::int64_t packets = (problem.cols - 1) / vector + 1;
  const int most_packets = most_elements_in_registers(problem) / vector;
  // Up to 4 packets a lane, rows stay within a warp: shuffles, but no barrier.
  if (packets <= std::int64_t{4} * kernels::warp_size) {
    const int lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min<std::int64_t>(packets, 32))));
    const int each = static_cast<int>((packets - 1) / lanes + 1);
    return kernels::Config{.threads = lanes, .rows = 128 / lanes, .vector = vector, .elements = vector * each};
  }
  // Else a block a row: few packets a thread for many bytes in flight, but blocks of at most 512
  // threads where that is possible, so that several are resident and one loads while another stores.
  for (int each = std::max(2, 8 / vector); each <= most_packets; each *= 2) {
    const std::int64_t threads = ((packets - 1) / each / kernels::warp_size + 1) * kernels::warp_size;
    if (threads > (2 * each > most_packets ? most_threads : most_threads / 2)) continue;
    return kernels::Config{.threads = static_cast<int>(threads),
                           .vector = vector,
                           .elements = vector * static_cast<int>((packets - 1) / threads + 1)};
  }
  return std::nullopt;
}

Specialization point(const Problem& problem, const Variant& variant, const Specialization& base) {
  if (problem.layout == Layout::strided && !variant.name.empty() && variant.name != "generic") {
    refuse(problem, variant, "it reads rows whose elements are neighbours");
  }
  Specialization result = base;
  if (problem.layout == Layout::contiguous && !variant.name.empty()) result = named(problem, variant);
  if (problem.layout == Layout::strided && variant.name == "generic") result.cols = 0;

  kernels::Config config = result.config;
  if (variant.family) {
    const auto family = family_named(*variant.family);
    if (!family)
      refuse(problem, variant, "'" + *variant.family + "' is no family; known: safe looped registers strided");
    result.family = *family;
    config.blocked = *family != Family::registers;
  }
  if ((result.family == Family::strided) != (problem.layout == Layout::strided)) {
    refuse(problem, variant, "the strided family serves strided layouts, and no other family does");
  }
  if (variant.threads) config.threads = *variant.threads;
  if (variant.vector) config.vector = *variant.vector;
  if (variant.rows) {
    config.rows = *variant.rows;
  } else if (variant.threads && result.family != Family::strided) {
    config.rows = std::max(1, 128 / std::max(config.threads, 1));
  }
  if (variant.elements) {
    config.elements = *variant.elements;
  } else if ((variant.threads || variant.vector || variant.family) && config.vector > 0 && config.threads > 0) {
    // As many as the row asks for where it is held in registers, else four packets.
    const std::int64_t step = std::int64_t{config.threads} * config.vector;
    const std::int64_t packets = result.family == Family::registers ? (problem.cols - 1) / step + 1 : 4;
    config.elements = config.vector * static_cast<int>(std::min<std::int64_t>(packets, most_elements + 1));
  }
  const std::int64_t cols = result.cols;
  result = specialization(problem, result.family, config);
  result.cols = result.family == Family::registers ? problem.cols : cols;
  if (const std::string why = illegal(result); !why.empty()) refuse(problem, variant, why);
  return result;
}

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const NamedPoint& point : named_points) names.emplace_back(point.name);
  return names;
}

}  // namespace jitsoftmax::plan
