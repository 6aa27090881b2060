#include "plan/choice.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "plan/candidates.hpp"
#include "plan/variants.hpp"

// The rules are what was the fastest on an H200 (kernel_templates/README.md): few packets a thread, for
// many threads with their loads under way, and small blocks, for several on a multiprocessor, of which
// some load while others store.
namespace jitsoftmax::plan {
namespace {

constexpr int warp = kernels::warp_size;
constexpr int small_block = 128;

std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }
// Of threads or blocks: what is larger is refused whatever it is, and must not overflow before.
constexpr std::int64_t beyond_any_use = 1 << 20;

int to_warps(std::int64_t threads) noexcept {
  return static_cast<int>(divide_up(std::min(threads, beyond_any_use), warp) * warp);
}
int power_of_two(std::int64_t at_least) noexcept {
  return static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(at_least, 1, beyond_any_use))));
}

// Thread block clusters.
bool has_clusters(const Arch& arch) noexcept { return arch.major >= 9; }

// What a problem asks of every kernel of its bundle.
struct RowShape {
  const Problem& problem;
  int vector;            // elements a packet
  std::int64_t packets;  // a row, at least 1
};

RowShape describe_rows(const Problem& problem, int vector) noexcept {
  return {problem, vector, std::max<std::int64_t>(problem.cols / vector, 1)};
}

// A row over `threads` of each of `cluster` blocks; nothing if they cannot hold it. As numbers, with one
// exponential an element; packed, of 16-bit types, where that is the only way.
std::optional<Specialization> in_registers(const RowShape& rows, int threads, int cluster = 1) {
  if (threads > 1024) return std::nullopt;
  const std::int64_t elements = divide_up(rows.packets, std::int64_t{threads} * cluster) * rows.vector;
  const bool packed = elements > most_elements_in_registers(rows.problem, false, threads);
  if (packed && (size_of(rows.problem.in) != 2 || elements > most_elements_in_registers(rows.problem, true, threads))) {
    return std::nullopt;
  }
  return specialization(rows.problem, Family::registers,
                        {.threads = threads,
                         .rows = cluster > 1 ? 1 : std::max(1, small_block / threads),
                         .cluster = cluster,
                         .vector = rows.vector,
                         .elements = static_cast<int>(elements),
                         .packed = packed});
}

// The threads of one block that hold a row, by the length of the row. Where nearly every row has edges, fewer
// threads with more packets are the faster.
int threads_of_one_block(const RowShape& rows) noexcept {
  const std::int64_t p = rows.packets;
  const bool edges = rows.problem.cols % rows.vector != 0;
  // Two rows of 64 threads with three packets each share a block better than three warps with two.
  const bool by_threes = p > std::int64_t{4} * warp && p < std::int64_t{6} * warp;
  if (rows.vector == 8) {  // 16-bit types
    const int half = p <= 512 ? static_cast<int>(std::bit_floor(static_cast<unsigned>(p / 2))) : 0;
    if (p <= 16) return power_of_two(edges && p <= 8 ? p : divide_up(p, 2));
    if (p <= std::int64_t{4} * warp) return std::min(half, warp);
    if (by_threes) return 2 * warp;
    return p <= 512 && !edges ? half : to_warps(divide_up(p, 4));
  }
  if (rows.problem.in == DType::f64) {
    if (p <= std::int64_t{4} * warp) return power_of_two(divide_up(p, 4));
    if (p <= 512) return 2 * warp;
    return to_warps(divide_up(p, 8));
  }
  if (p <= 16) return power_of_two(p);
  if (p <= 32) return 16;
  if (p <= 96) return warp;
  if (p <= 128 || by_threes) return 2 * warp;
  if (p <= 384) return to_warps(divide_up(p, 2));
  return to_warps(divide_up(p, p <= 512 ? 4 : p <= 1024 ? 2 : 8));
}

// What a cluster holds.
struct ClusterShape {
  int blocks = 1;
  int threads = warp;  // of a block, at most
  int elements = 1;    // of a thread, at most
  int least_threads = warp;
};

// A long row in the registers of a cluster: of the first shape that holds it, with no more threads than it takes. One
// block does where accesses are narrow, and so packets many.
std::optional<Specialization> in_cluster_registers(const RowShape& rows, int most_blocks) {
  static constexpr ClusterShape of_f32[] = {{1, 128, 24},  {1, 256, 24, 256}, {4, 128, 16}, {4, 128, 24},
                                            {8, 128, 16},  {4, 256, 32},      {8, 256, 32}, {16, 256, 32},
                                            {16, 512, 32}, {16, 1024, 32}};
  static constexpr ClusterShape of_16_bits[] = {{2, 128, 32},      {1, 128, 56},  {2, 128, 56},      {4, 128, 32},
                                                {2, 256, 56, 256}, {4, 128, 64},  {4, 256, 56, 256}, {8, 128, 64},
                                                {8, 256, 56, 256}, {16, 128, 64}, {16, 256, 64},     {16, 512, 64}};
  static constexpr ClusterShape of_f64[] = {{1, 256, 16}, {2, 256, 16},  {4, 256, 16},
                                            {8, 256, 16}, {16, 256, 16}, {16, 512, 16}};
  const std::span<const ClusterShape> all = rows.problem.in == DType::f64 ? std::span<const ClusterShape>(of_f64)
                                            : rows.vector == 8            ? std::span<const ClusterShape>(of_16_bits)
                                                                          : std::span<const ClusterShape>(of_f32);
  for (const ClusterShape& shape : all) {
    const std::int64_t each = std::int64_t{shape.blocks} * (shape.elements / rows.vector);
    if (shape.blocks > most_blocks || rows.packets > each * shape.threads) continue;
    return in_registers(rows, std::max(to_warps(divide_up(rows.packets, each)), shape.least_threads), shape.blocks);
  }
  return std::nullopt;
}

// The row is read twice: for any length.
Specialization looped(const RowShape& rows) {
  const bool wide = rows.problem.in == DType::f64;
  return specialization(rows.problem, Family::looped,
                        {.threads = wide ? 512 : 1024,
                         .vector = rows.vector,
                         .elements = rows.vector == 8 ? 16 : 4 * rows.vector,
                         .blocked = true});
}

// A row over as many blocks as it takes, for few rows: of many, blocks that read them twice are as fast.
Specialization split(const RowShape& rows) {
  const bool large = rows.problem.in == DType::f32;
  return specialization(rows.problem, Family::split,
                        {.threads = large ? 512 : 256,
                         .vector = rows.vector,
                         .elements = rows.problem.in == DType::f64 ? 8 : 16,
                         .blocked = true,
                         .resident = large ? 2 : 0});
}

Specialization for_many_rows(const Problem& problem, const Arch& arch, int vector) {
  const RowShape rows = describe_rows(problem, vector);
  // Beyond, several blocks with fewer packets each are faster where there are clusters.
  const std::int64_t most_in_one_block = problem.in == DType::f64 ? 2048 : rows.vector == 8 ? 1023 : 1024;
  if (!has_clusters(arch) || rows.packets <= most_in_one_block) {
    if (const auto s = in_registers(rows, threads_of_one_block(rows))) return *s;
  }
  if (has_clusters(arch)) {
    if (auto s = in_cluster_registers(rows, has_large_clusters(arch) ? 16 : 8)) {
      s->config.staggered = is_worth_staggering(*s, arch);
      return *s;
    }
  }
  return looped(rows);
}

// Where blocks are fewer than multiprocessors, a row is spread over as many of them as can share it.
constexpr std::int64_t few_rows = 64;
// Those that clusters of 16 such blocks have room for at once.
std::int64_t few_rows_of_large_clusters(int threads) noexcept { return std::min<std::int64_t>(56, 8192 / threads); }

std::optional<Specialization> for_few_rows(const Problem& problem, const Arch& arch, int vector) {
  if (problem.cols < 8192) return std::nullopt;
  const RowShape rows = describe_rows(problem, vector);
  std::optional<Specialization> few;
  if (has_clusters(arch)) {
    const int cluster = problem.cols > 16384 && has_large_clusters(arch) ? 16 : 8;
    const int most = cluster == 16 && problem.cols >= 65536 ? 32 : 16;
    const int each = std::min(most, most_elements_in_registers(problem, false, warp)) / vector;
    for (const int threads : {to_warps(divide_up(rows.packets, std::int64_t{cluster} * each)), 512, 1024}) {
      if (!few) few = in_registers(rows, std::max(threads, small_block), cluster);
    }
    if (few) few->config.low_latency = may_have_low_latency(*few);
  }
  // Of blocks all over the device none waits for the others for less than a row of this length takes in one.
  if (!few && problem.cols >= 32768) few = split(rows);
  if (few) few->most_rows = few->config.cluster > 8 ? few_rows_of_large_clusters(few->config.threads) : few_rows;
  return few;
}

// The fewest rows begin at once, and more of them one after another, by a kernel of their own, or by that for any
// number of rows if it is the same. If it would be for hardly any numbers of rows there is none, and all of these begin
// at once.
std::vector<Specialization> with_staggered(const Specialization& few, const Specialization& many, const Arch& arch) {
  if (few.config.cluster <= 8 || !is_worth_staggering(few, arch)) return {few};
  Specialization first = few;
  Specialization more = few;
  more.config.staggered = true;
  more.least_rows = fewest_staggered_tiles(few);
  const bool same = more.config == many.config;
  if (!same && more.least_rows * 2 > few.most_rows) return {few};
  first.most_rows = std::min(few.most_rows, more.least_rows - 1);
  if (same) return {first};
  return {first, more};
}

// A tile's limits, of the blocks of a cluster.
struct TileLimits {
  int warps;
  int cluster;
  bool packed;  // elements of 16 bits, in pairs
};

// Blocks of a cluster that hold packed columns: with 64 registers a thread, which the compiler keeps to without a spill
// if the blocks are not a power of two.
constexpr int most_packed_columns = 37;  // of a thread
int packed_cluster(std::int64_t columns, int warps) noexcept {
  const int cluster = static_cast<int>(divide_up(columns, std::int64_t{warps} * most_packed_columns));
  return power_of_two(cluster) == cluster ? cluster + 1 : cluster;
}

// Rows side by side in the registers of a small block, or of a cluster of them, within the first limits that allow it.
// Elements of 16 bits in pairs, since an access of a warp is 64 bytes otherwise.
Specialization for_strided(const Problem& problem, const Arch& arch, bool deterministic) {
  static constexpr TileLimits of_pairs[] = {{4, 8, false}, {8, 8, true}, {16, 16, true}, {32, 16, true}};
  static constexpr TileLimits of_elements[] = {{8, 16, false}, {16, 16, false}, {32, 16, false}};
  const bool pairs = size_of(problem.in) == 2 && !deterministic && problem.cols > 16;
  const int vector = pairs ? 2 : 1;
  const int most_cluster = has_large_clusters(arch) ? 16 : has_clusters(arch) ? 8 : 1;
  for (const TileLimits& limits : pairs ? std::span<const TileLimits>(of_pairs) : of_elements) {
    const int columns = most_elements_in_registers(problem, false, limits.warps * warp);  // of a thread
    int cluster = power_of_two(divide_up(problem.cols, std::int64_t{limits.warps} * columns));
    if (cluster > std::min(limits.cluster, most_cluster)) continue;
    const int warps = std::min(power_of_two(divide_up(problem.cols, 8)), limits.warps);
    const bool bounded = limits.packed && cluster > 1;
    if (bounded) cluster = packed_cluster(problem.cols, warps);
    const std::int64_t each = divide_up(std::max<std::int64_t>(problem.cols, 1), std::int64_t{warps} * cluster);
    Specialization s = specialization(problem, Family::strided_registers,
                                      {.threads = warps,
                                       .rows = warp,
                                       .cluster = cluster,
                                       .vector = vector,
                                       .elements = static_cast<int>(each) * vector,
                                       .packed = limits.packed,
                                       .resident = bounded ? warp / warps : 0});
    s.config.staggered = is_worth_staggering(s, arch);
    return s;
  }
  return generic(problem);
}

// Tiles of 16-bit elements that whole multiprocessors hold, where they are about as many as an H200 holds at once: then
// it reads all of them, and writes them thereafter. Fewer leave multiprocessors without one.
struct StagedTiles {
  std::int64_t most_cols;
  int warps;
  int cluster;
  std::int64_t least_rows;
  std::int64_t most_rows;
};
std::optional<Specialization> for_strided_staged(const Problem& problem, const Arch& arch) {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  static constexpr StagedTiles all[] = {
      {1024, 8, 1, 14000, 16896}, {2048, 16, 1, 6500, 16896}, {4096, 16, 2, 2560, any}};
  if (!has_large_clusters(arch) || size_of(problem.in) != 2) return std::nullopt;
  for (const StagedTiles& tiles : all) {
    // Shorter rows leave room that smaller blocks make better use of.
    if (problem.cols > tiles.most_cols || problem.cols <= tiles.most_cols / 8 * 5) continue;
    auto staged = staged_tile(problem, tiles.warps, tiles.cluster);
    if (!staged) continue;
    staged->config.aligned = true;
    staged->least_rows = tiles.least_rows;
    staged->most_rows = tiles.most_rows;
    return staged;
  }
  return std::nullopt;
}

// The widest access that cuts a packed row into whole packets.
int dividing_vector(const Problem& problem) noexcept {
  int vector = widest_vector(problem);
  while (problem.cols % vector != 0) vector /= 2;
  return vector;
}

// Staged tiles are of architectures with large clusters, and so are the kernels beside them.
constexpr Arch large_clusters{9, 0, 0};

bool is_aligned(const void* pointer, std::int64_t stride, DType type, int vector) noexcept {
  const auto bytes = static_cast<std::uintptr_t>(vector) * static_cast<std::uintptr_t>(size_of(type));
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0 && stride % vector == 0;
}

// What serves strided rows whose packets are not aligned: the same warps with a tile of fewer rows, if registers hold
// its columns as numbers.
Specialization by_single_elements(const Specialization& wide) {
  const Problem problem{.cols = wide.cols, .in = wide.in, .out = wide.out, .op = wide.op, .layout = Layout::strided};
  const int cluster = power_of_two(wide.config.cluster);
  const std::int64_t columns =
      divide_up(std::max<std::int64_t>(problem.cols, 1), std::int64_t{wide.config.threads} * cluster);
  if (wide.family == Family::strided_registers &&
      columns <= most_elements_in_registers(problem, false, wide.config.threads * warp)) {
    return specialization(problem, wide.family,
                          {.threads = wide.config.threads,
                           .rows = warp,
                           .cluster = cluster,
                           .elements = static_cast<int>(columns),
                           .staggered = wide.config.staggered});
  }
  return generic(problem);
}

}  // namespace

Bundle bundle_of(const Specialization& specialization, bool deterministic) {
  Specialization aligned = specialization;
  aligned.config.aligned = true;
  if (specialization.config.vector == 1) return {aligned};  // an element is always aligned
  if (specialization.family == Family::strided_staged) {
    // Rows whose copies are not aligned get what they would without it, where there is that much shared memory.
    Bundle bundle = {aligned};
    for (const Specialization& s : bundle_of(for_strided(problem_of(aligned), large_clusters, false), false)) {
      bundle.push_back(s);
    }
    return bundle;
  }
  if (is_strided(specialization.family)) {
    // Packets lie across the rows, so that whether they are aligned says nothing about the length of a row.
    Specialization any = by_single_elements(specialization);
    any.config.aligned = true;
    any.most_rows = specialization.most_rows;
    return {aligned, any};
  }
  Specialization any = specialization;
  any.config.peeled = !deterministic;
  // Narrow accesses and edges take registers of their own, and a bound that held numbers just keep leaves none.
  if (any.family == Family::registers && !any.config.packed && any.in != DType::f64) any.config.resident = 0;
  // Rows of such a length are aligned only where their stride is padded.
  if (any.config.peeled && specialization.cols % specialization.config.vector != 0) return {any};
  return {aligned, any};
}

Bundle choose(const Problem& problem, const Arch& arch, const Variant& variant, bool deterministic) {
  // Without peeling, a wide access that does not divide the row would find few rows aligned to it.
  const int vector = deterministic ? dividing_vector(problem) : widest_vector(problem);
  const Specialization base = problem.layout == Layout::strided ? for_strided(problem, arch, deterministic)
                                                                : for_many_rows(problem, arch, vector);
  if (!variant.empty()) {
    const Specialization asked = point(problem, variant, base);
    if (deterministic && is_strided(asked.family) && asked.config.vector > 1) {
      throw Error(ErrorCode::invalid_argument,
                  "variant given by parameters cannot serve " + describe(problem) +
                      " deterministically: whether neighbouring rows share packets depends on their address; "
                      "pass vector 1");
    }
    return bundle_of(asked, deterministic);
  }

  Bundle bundle;
  if (problem.layout == Layout::contiguous && !deterministic) {
    if (const auto few = for_few_rows(problem, arch, vector)) {
      for (const Specialization& some : with_staggered(*few, base, arch)) {
        for (const Specialization& s : bundle_of(some, deterministic)) bundle.push_back(s);
      }
    }
  }
  if (problem.layout == Layout::strided && !deterministic) {
    if (const auto staged = for_strided_staged(problem, arch)) bundle = {*staged};  // what is beside it follows
  }
  for (const Specialization& s : bundle_of(base, deterministic)) bundle.push_back(s);
  return bundle;
}

Bundle generic_bundle(Problem problem, const Arch& arch) {
  problem.cols = 1;
  return choose(problem, arch, {.name = "generic"});
}

int elements_of_access(const Specialization& s) noexcept {
  return s.family == Family::strided_staged ? kernels::copy_bytes / size_of(s.in) : s.config.vector;
}

bool accepts(const Specialization& specialization, const Rows& rows) noexcept {
  const kernels::Config& config = specialization.config;
  if (rows.count < specialization.least_rows || rows.count > specialization.most_rows) return false;
  if (!config.aligned || config.vector == 1) return true;
  const int elements = elements_of_access(specialization);
  // Neighbours of a strided row are in the same packet.
  if (is_strided(specialization.family) && rows.inner % elements != 0) return false;
  return is_aligned(rows.in, rows.in_stride, specialization.in, elements) &&
         is_aligned(rows.out, rows.out_stride, specialization.out, config.vector);
}

std::size_t select(const Bundle& bundle, const Rows& rows) noexcept {
  const auto found =
      std::find_if(bundle.begin(), bundle.end(), [&](const Specialization& s) { return accepts(s, rows); });
  return static_cast<std::size_t>(std::min(found, bundle.end() - 1) - bundle.begin());
}

}  // namespace jitsoftmax::plan
