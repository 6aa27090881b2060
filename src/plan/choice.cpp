#include "plan/choice.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
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

// Thread block clusters, and a block with most of a multiprocessor's shared memory.
bool has_clusters(const Arch& arch) noexcept { return arch.major >= 9; }
bool has_large_clusters(const Arch& arch) noexcept { return arch.major == 9 || arch.major == 10; }

// What a problem asks of every kernel of its bundle.
struct RowShape {
  const Problem& problem;
  int vector;            // elements a packet
  std::int64_t packets;  // a row, at least 1
  bool packed;           // bf16 is held as it is read: f16 costs more to widen than to keep
};

RowShape describe_rows(const Problem& problem, int vector) noexcept {
  return {problem, vector, std::max<std::int64_t>(problem.cols / vector, 1),
          problem.in == DType::bf16 && problem.out == DType::bf16};
}

// A row over `threads` of each of `cluster` blocks; nothing if they cannot hold it.
std::optional<Specialization> in_registers(const RowShape& rows, int threads, int cluster = 1) {
  const std::int64_t each = divide_up(rows.packets, std::int64_t{threads} * cluster);
  const int most = most_elements_in_registers(rows.problem, rows.packed, threads);
  if (threads > 1024 || each * rows.vector > most) return std::nullopt;
  return specialization(rows.problem, Family::registers,
                        {.threads = threads,
                         .rows = std::max(1, small_block / threads),
                         .cluster = cluster,
                         .vector = rows.vector,
                         .elements = static_cast<int>(each) * rows.vector,
                         .packed = rows.packed});
}

// The threads of one block that hold a row, by the length of the row.
int threads_of_one_block(const RowShape& rows) noexcept {
  const std::int64_t p = rows.packets;
  if (rows.vector == 8) {  // 16-bit types: 4 packets a thread
    if (p <= 16) return power_of_two(divide_up(p, 2));
    return p <= 4 * warp ? std::min(static_cast<int>(std::bit_floor(static_cast<unsigned>(p / 2))), warp)
                         : to_warps(divide_up(p, 4));
  }
  if (rows.problem.in == DType::f64) {  // 4 packets a thread: 8 are slower, for all that they keep of the row
    return p <= 4 * warp ? power_of_two(divide_up(p, 4)) : to_warps(divide_up(p, 4));
  }
  if (p <= 16) return power_of_two(p);
  if (p <= 32) return 16;
  if (p <= 96) return warp;
  if (p <= 128) return 2 * warp;
  if (p <= 1024) return p <= 512 ? to_warps(divide_up(p, p <= 384 ? 2 : 4)) : small_block;
  if (p <= 2048) return to_warps(divide_up(p, 8));
  return to_warps(divide_up(p, p <= 4096 ? 4 : 8));
}

// A long row in the registers of a cluster: blocks of 256 threads, more where the cluster is not
// enough.
std::optional<Specialization> in_cluster_registers(const RowShape& rows, int most_cluster) {
  const auto reach = [&](int threads, int largest) -> std::optional<Specialization> {
    const int most = most_elements_in_registers(rows.problem, rows.packed, threads) / rows.vector;
    const int cluster = power_of_two(divide_up(rows.packets, std::int64_t{threads} * most));
    return cluster <= std::min(largest, most_cluster) ? in_registers(rows, threads, cluster) : std::nullopt;
  };
  for (const auto& [threads, largest] : {std::pair{256, 8}, {512, 8}, {512, 16}, {1024, 16}}) {
    if (const auto s = reach(threads, largest)) return s;
  }
  return std::nullopt;
}

// A long row in shared memory: as numbers in registers, a 16-bit type takes twice the room.
std::optional<Specialization> staged(const RowShape& rows, int most_cluster) {
  constexpr int threads = 256;
  constexpr int pieces = 8;
  const int cluster =
      rows.packets <= 16 * threads ? 1 : power_of_two(divide_up(rows.packets, std::int64_t{threads} * pieces));
  if (cluster > most_cluster) return std::nullopt;
  const std::int64_t each = divide_up(divide_up(rows.packets, std::int64_t{threads} * cluster), pieces) * pieces;
  return specialization(rows.problem, Family::staged,
                        {.threads = threads,
                         .cluster = cluster,
                         .vector = rows.vector,
                         .elements = static_cast<int>(each) * rows.vector,
                         .pieces = pieces});
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

Specialization for_many_rows(const Problem& problem, const Arch& arch, int vector) {
  const RowShape rows = describe_rows(problem, vector);
  // Of the types that take the most registers an element, or bring the most elements an access.
  const bool stages = has_large_clusters(arch) && (vector == 8 || (problem.in == DType::f64 && vector == 2));
  if (!stages || rows.packets <= 2048) {
    if (const auto s = in_registers(rows, threads_of_one_block(rows))) return *s;
  }
  if (has_large_clusters(arch)) {
    if (const auto s = stages ? staged(rows, 16) : in_cluster_registers(rows, 16)) return *s;
  } else if (has_clusters(arch)) {
    if (const auto s = in_cluster_registers(rows, 8)) return *s;
  }
  return looped(rows);
}

// Where blocks are fewer than multiprocessors, a row is spread over as many of them as can share it.
constexpr std::int64_t few_rows = 64;
std::optional<Specialization> for_few_rows(const Problem& problem, const Arch& arch, int vector) {
  if (!has_clusters(arch) || problem.cols < 8192) return std::nullopt;
  const RowShape rows = describe_rows(problem, vector);
  const int cluster = problem.cols >= 65536 && has_large_clusters(arch) ? 16 : 8;
  const int each = cluster == 16 && vector != 8 ? 8 : 4;
  for (const int threads : {to_warps(divide_up(rows.packets, std::int64_t{cluster} * each)), 512, 1024}) {
    if (auto s = in_registers(rows, std::max(threads, small_block), cluster)) {
      s->most_rows = few_rows;
      return s;
    }
  }
  return std::nullopt;
}

// Rows side by side in the registers of a block, or a cluster of blocks, of 16 warps.
Specialization for_strided(const Problem& problem, const Arch& arch) {
  constexpr int most_warps = 16;
  const int most_cluster = has_large_clusters(arch) ? 16 : has_clusters(arch) ? 8 : 1;
  const int most = most_elements_in_registers(problem, false, most_warps * warp);
  const int cluster = power_of_two(divide_up(problem.cols, std::int64_t{most_warps} * most));
  if (cluster > most_cluster) return generic(problem);
  const int warps = std::min(power_of_two(divide_up(problem.cols, 8)), most_warps);
  return specialization(
      problem, Family::strided_registers,
      {.threads = warps,
       .rows = warp,
       .cluster = cluster,
       .elements = static_cast<int>(divide_up(std::max<std::int64_t>(problem.cols, 1), warps * cluster))});
}

// The widest access that cuts a packed row into whole packets.
int dividing_vector(const Problem& problem) noexcept {
  int vector = widest_vector(problem);
  while (problem.cols % vector != 0) vector /= 2;
  return vector;
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

Bundle choose(const Problem& problem, const Arch& arch, const Variant& variant, bool deterministic) {
  // Without peeling, a wide access that does not divide the row would find few rows aligned to it.
  const int vector = deterministic ? dividing_vector(problem) : widest_vector(problem);
  const Specialization base =
      problem.layout == Layout::strided ? for_strided(problem, arch) : for_many_rows(problem, arch, vector);
  if (!variant.empty()) return bundle_of(point(problem, variant, base), deterministic);

  Bundle bundle;
  if (problem.layout == Layout::contiguous && !deterministic) {
    if (const auto few = for_few_rows(problem, arch, vector)) bundle = bundle_of(*few, deterministic);
  }
  for (const Specialization& s : bundle_of(base, deterministic)) bundle.push_back(s);
  return bundle;
}

bool accepts(const Specialization& specialization, const Rows& rows) noexcept {
  const kernels::Config& config = specialization.config;
  if (rows.count > specialization.most_rows) return false;
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
