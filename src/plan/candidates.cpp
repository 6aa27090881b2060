#include "plan/candidates.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>

namespace jitsoftmax::plan {
namespace {

constexpr int most_threads = 1024;         // of a block, on every device
constexpr int most_cluster = 16;           // 8 on any device, 16 where it is asked for: sm_90 and newer
constexpr int most_staged_elements = 256;  // of a thread: more only costs compile time
constexpr int most_shared = 227 * 1024;    // of a block, sm_90

int planned_shared(Family family, const kernels::Config& config, DType in) noexcept {
  switch (family) {
    case Family::strided:
    case Family::strided_registers:
      return kernels::tile_bytes(config, accumulator_bytes(in));
    case Family::strided_staged:
      return kernels::staged_tile_bytes(config, accumulator_bytes(in), size_of(in));
    case Family::staged:
      return kernels::staged_bytes(config, accumulator_bytes(in));
    default:
      return kernels::merge_bytes(config, accumulator_bytes(in));
  }
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
  if (c.cluster < 1 || c.cluster > most_cluster ||
      (!is_strided(s.family) && !std::has_single_bit(static_cast<unsigned>(c.cluster)))) {
    return is_strided(s.family) ? "the blocks a row are not 1 to 16"
                                : "the blocks a row are not a power of two up to 16";
  }
  if (c.cluster > 1 && !reads_once(s.family)) return "clusters are of the families that read a row once";
  if (c.cluster > 1 && !is_strided(s.family) && (c.rows != 1 || threads < kernels::warp_size)) {
    return "in a cluster a block has one row and whole warps";
  }
  const bool in_pairs = c.packed && is_strided(s.family);
  if (c.elements > (waits_in_shared_memory(s.family) ? most_staged_elements
                    : in_pairs                       ? 2 * most_elements
                                                     : most_elements)) {
    return "too many elements a thread: more only costs compile time";
  }
  if (c.elements % c.vector != 0) return "the elements a thread are not a multiple of the vector width";
  if (c.persistent && s.family != Family::looped) return "only the looped family is persistent";
  if (s.family == Family::split && (s.cols == 0 || c.rows != 1 || threads < kernels::warp_size)) {
    return "the split family takes rows of a length that is known, a part of one to a block of whole warps";
  }
  if (is_strided(s.family) &&
      (c.rows != kernels::warp_size || c.vector > threads || !std::has_single_bit(static_cast<unsigned>(threads)))) {
    return "the strided families take 32 rows a block, a power of two of warps, and no wider accesses than those";
  }
  if (!is_strided(s.family) && (threads < kernels::warp_size ? !std::has_single_bit(static_cast<unsigned>(threads))
                                                             : threads % kernels::warp_size != 0)) {
    return "the threads a row are neither a power of two below 32 nor a multiple of 32";
  }
  if (!std::has_single_bit(static_cast<unsigned>(c.vector)) || c.vector > 16 / widest_type) {
    return "the vector width is not a power of two of at most 16 bytes";
  }
  if (c.packed && s.family != Family::registers && s.family != Family::strided_registers) {
    return "only the families with a row in registers hold packed elements";
  }
  if (c.packed && is_strided(s.family) && (size_of(s.in) != 2 || c.vector == 1)) {
    return "strided elements are packed where an access has several of 16 bits";
  }
  if (c.low_latency && !may_have_low_latency(s)) {
    return "of low latency are clusters that hold f32 or 16-bit rows in registers as numbers, up to 256 threads a "
           "block";
  }
  if (c.staggered && !may_be_staggered(s)) {
    return "staggered are clusters that hold their rows in registers, or contiguous ones in shared memory";
  }
  if (c.pieces != 0 && !waits_in_shared_memory(s.family)) return "only the staged families have pieces";
  if (reads_once(s.family) && (s.cols == 0 || (is_strided(s.family) ? s.cols : s.cols / c.vector) >
                                                  std::int64_t{threads} * c.cluster * (c.elements / c.vector))) {
    return "the row does not fit in what its threads hold";
  }
  if (s.family == Family::staged) {
    if (c.vector * size_of(s.in) != kernels::staged_packet_bytes) return "the staged family moves 16 bytes of input";
    if (c.rows != 1 || threads < kernels::warp_size) return "the staged family takes a row a block, or a cluster";
    if (c.pieces < 1 || c.elements / c.vector % c.pieces != 0) {
      return "the packets a thread are not a multiple of the pieces";
    }
  }
  if (s.family == Family::strided_staged) {
    if (c.vector == 1) return "a staged tile has several rows a thread";
    if (c.pieces < 1 || c.elements / c.vector < c.pieces * kernels::staged_columns + 2) {
      return "a thread has at least 8 columns for each piece, and 2 in registers";
    }
  }
  if (waits_in_shared_memory(s.family) && c.shared > most_shared) {
    return "what waits in shared memory does not fit there";
  }
  return "";
}

Specialization specialization(const Problem& problem, Family family, const kernels::Config& config) {
  Specialization result{
      .family = family, .config = config, .cols = problem.cols, .in = problem.in, .out = problem.out, .op = problem.op};
  result.config.aligned = false;
  // Left to itself the assembler holds f64 kernels to 64 registers, for occupancy, and spills.
  if (problem.in == DType::f64 && config.resident == 0) result.config.resident = 1;
  // So it does here to 80, where two blocks of 256 threads may have more. Of 16 elements 64 registers are enough, if it
  // is told so.
  if (family == Family::looped && config.blocked && config.threads <= 256 && config.threads * config.rows <= 256 &&
      result.config.resident == 0) {
    result.config.resident = problem.in != DType::f64 && config.elements <= 16 ? 4 : 2;
  }
  // Numbers that no legal kernel has may overflow there.
  result.config.shared = 0;
  if (illegal(result).empty()) result.config.shared = planned_shared(family, result.config, problem.in);
  return result;
}

int most_elements_in_registers(const Problem& problem, bool packed, int threads) noexcept {
  const bool large_block = threads > 512;  // leaves each thread 64 registers
  if (problem.in == DType::f64) return large_block ? 8 : 16;
  return packed && !large_block ? 64 : 32;
}

std::optional<Specialization> staged_tile(const Problem& problem, int warps, int cluster) {
  constexpr int warps_of_multiprocessor = 16;  // leave each thread 128 registers
  const std::int64_t in_registers = warps <= warps_of_multiprocessor ? 32 : 16;
  const std::int64_t columns = (problem.cols - 1) / (std::int64_t{warps} * cluster) + 1;  // of a thread
  constexpr std::int64_t most_columns = most_staged_elements / 2;
  if (columns <= 2 * in_registers || columns > most_columns) return std::nullopt;
  const Specialization s =
      specialization(problem, Family::strided_staged,
                     {.threads = warps,
                      .rows = kernels::warp_size,
                      .cluster = cluster,
                      .vector = 2,
                      .elements = static_cast<int>(columns) * 2,
                      .pieces = static_cast<int>((columns - in_registers - 1) / kernels::staged_columns + 1),
                      .resident = std::max(1, warps_of_multiprocessor / warps)});
  if (!illegal(s).empty()) return std::nullopt;
  return s;
}

bool has_large_clusters(const Arch& arch) noexcept { return arch.major == 9 || arch.major == 10; }

bool may_have_low_latency(const Specialization& s) noexcept {
  return s.family == Family::registers && s.config.cluster > 1 && s.config.threads <= 256 && !s.config.packed &&
         s.in != DType::f64;
}

bool may_be_staggered(const Specialization& s) noexcept {
  return s.config.cluster > 1 && reads_once(s.family) && s.family != Family::counted &&
         s.family != Family::strided_staged;
}

bool is_worth_staggering(const Specialization& s, const Arch& arch) noexcept {
  constexpr std::int64_t small_tile = std::int64_t{48} * 1024;  // as measured on an H200, as what follows
  constexpr int small_strided_cluster = 4;
  return has_large_clusters(arch) && may_be_staggered(s) && bytes_of_tile(s) > small_tile &&
         (!is_strided(s.family) || s.config.cluster > small_strided_cluster);
}

std::int64_t fewest_staggered_tiles(const Specialization& s) noexcept {
  constexpr std::int64_t bytes = 3 << 20;
  constexpr std::int64_t tiles = 16;
  return std::max(tiles, (bytes - 1) / std::max<std::int64_t>(bytes_of_tile(s), 1) + 1);
}

namespace {

// Of one block: powers of two, and what a few packets a thread come to exactly.
std::set<int> threads_of(std::int64_t packets) {
  std::set<int> result = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  for (const std::int64_t each : {2, 4}) {
    const std::int64_t warps = (packets - 1) / (each * kernels::warp_size) + 1;
    if (warps > 2 && warps <= most_threads / kernels::warp_size)
      result.insert(static_cast<int>(warps) * kernels::warp_size);
  }
  return result;
}

}  // namespace

std::vector<Specialization> candidates(const Problem& problem, const Arch& arch) {
  std::vector<Specialization> result;
  const auto add = [&](Family family, const kernels::Config& config) {
    Specialization s = specialization(problem, family, config);
    if (!illegal(s).empty()) return;
    const bool staggered = is_worth_staggering(s, arch);
    // Of the fewest rows none has to wait for its turn, and the kernel is the faster if it does not look.
    if (!staggered || s.config.low_latency) result.push_back(s);
    s.config.staggered = staggered;
    if (staggered) result.push_back(s);
  };
  const bool clusters = arch.major >= 9;
  if (problem.layout == Layout::strided) {
    for (int vector = widest_vector(problem); vector >= 1; vector /= 2) {
      for (const int warps : {1, 2, 4, 8, 16, 32}) {
        // Wide accesses take fewer instructions, and so less of what is gained by more threads.
        const bool many = warps <= 4 || (vector > 1 && warps <= 8);
        const int numbers =
            many ? most_elements : most_elements_in_registers(problem, false, warps * kernels::warp_size);
        for (const int cluster : {1, 2, 4, 8, 16}) {
          const std::int64_t each = (problem.cols - 1) / (std::int64_t{warps} * cluster) + 1;
          if (cluster > 1 && (!clusters || each * vector < 4)) continue;
          for (const bool packed : {false, true}) {
            if (packed && (size_of(problem.in) != 2 || vector == 1)) continue;
            const int most = !packed ? numbers : warps <= 8 ? 2 * most_elements : most_elements;
            if (each * vector > most) continue;
            add(Family::strided_registers, {.threads = warps,
                                            .rows = kernels::warp_size,
                                            .cluster = cluster,
                                            .vector = vector,
                                            .elements = static_cast<int>(each) * vector,
                                            .packed = packed});
          }
        }
        for (const int cluster : {1, 2}) {
          if (!has_large_clusters(arch) || size_of(problem.in) != 2 || vector != 2 || warps < 4) continue;
          if (const auto staged = staged_tile(problem, warps, cluster)) result.push_back(*staged);
        }
        add(Family::strided, {.threads = warps,
                              .rows = kernels::warp_size,
                              .vector = vector,
                              .elements = std::max(8, 4 * vector),
                              .blocked = true});
      }
    }
    return result;
  }
  const int vector = widest_vector(problem);
  const std::int64_t packets = std::max<std::int64_t>(problem.cols / vector, 1);
  for (const int threads : threads_of(packets)) {
    for (const int cluster : {1, 2, 4, 8, 16}) {
      if (cluster > 1 && (!clusters || threads < 128 || problem.cols < 8192)) continue;
      const std::int64_t all = std::int64_t{threads} * cluster;
      const std::int64_t each = (packets - 1) / all + 1;
      if (each * vector > 256) continue;
      // Threads without a packet are wasted, but where even the smallest group has some.
      if (all > 1 && packets * 2 <= all) continue;
      const int elements = static_cast<int>(each) * vector;
      const int rows = threads < 128 ? 128 / threads : 1;
      for (const bool packed : {false, true}) {
        if ((packed && size_of(problem.in) != 2) || elements > most_elements_in_registers(problem, packed, threads))
          continue;
        for (const int resident : {0, 2048 / (threads * rows)}) {
          // Few registers, for many threads, where they may do.
          if (resident != 0 && (packed ? elements > 32 : size_of(problem.in) != 2 || elements != 2 * vector)) continue;
          const kernels::Config config = {.threads = threads,
                                          .rows = rows,
                                          .cluster = cluster,
                                          .vector = vector,
                                          .elements = elements,
                                          .packed = packed,
                                          .resident = resident};
          add(Family::registers, config);
          if (cluster < 8 || resident != 0) continue;
          kernels::Config for_few = config;
          for_few.low_latency = true;
          add(Family::registers, for_few);
        }
      }
      if (!clusters || rows != 1 || elements < 2 * vector) continue;
      if (problem.cols < 8192) continue;
      for (const int pieces : {2, 4, 8}) {
        const int rounded = static_cast<int>((each - 1) / pieces + 1) * pieces;
        if (pieces > rounded || rounded * vector / pieces > 32) continue;
        add(Family::staged,
            {.threads = threads, .cluster = cluster, .vector = vector, .elements = rounded * vector, .pieces = pieces});
      }
    }
  }
  for (const int threads : {256, 512, 1024}) {
    for (const int elements : {2 * vector, 4 * vector}) {
      for (const int resident : {0, 1024 / threads}) {
        if (packets <= std::int64_t{16} * threads || (resident != 0 && threads != 512)) continue;
        add(Family::split,
            {.threads = threads, .vector = vector, .elements = elements, .blocked = true, .resident = resident});
      }
    }
    const int elements = problem.in == DType::f64 || threads < 1024 || vector < 8 ? 4 * vector : 2 * vector;
    if (problem.in == DType::f64 && threads == 1024) continue;
    if (packets < threads) continue;
    add(Family::looped, {.threads = threads, .vector = vector, .elements = elements, .blocked = true});
  }
  return result;
}

}  // namespace jitsoftmax::plan
