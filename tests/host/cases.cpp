#include "host/cases.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "plan/candidates.hpp"
#include "plan/variants.hpp"

namespace jitsoftmax::host_test {
namespace {

constexpr Arch any_arch{9, 0, 0};
constexpr std::int64_t longest_threshold = 1 << 16;  // beyond what a block's registers hold

struct Types {
  DType in;
  DType out;
};
constexpr std::array<Types, 8> types{{{DType::f16, DType::f16},
                                      {DType::bf16, DType::bf16},
                                      {DType::f32, DType::f32},
                                      {DType::f64, DType::f64},
                                      {DType::f16, DType::f32},
                                      {DType::bf16, DType::f32},
                                      {DType::f32, DType::f16},
                                      {DType::f32, DType::bf16}}};

// What a kernel's code depends on most; within one layout only the number of warps grows.
struct LayoutOfRow {
  plan::Family family;
  int rows;
  int threads;   // of a row that shares a block
  int elements;  // of a row that shares a block
  bool one_warp;
  int cluster;
  int pieces;
  bool packed;
  friend bool operator==(const LayoutOfRow&, const LayoutOfRow&) = default;
};

LayoutOfRow layout(const plan::Specialization& s) {
  const kernels::Config& c = s.config;
  const bool shares = c.rows > 1;
  return {
      s.family, c.rows,  shares ? c.threads : 0, shares ? c.elements : 0, c.threads <= kernels::warp_size, c.cluster,
      c.pieces, c.packed};
}

// Appends the last length before and the first one after every change, of rows that are multiples of `width`
// but not of the double, or of any multiple if no access is wider. Where input and output are of one type, also
// the second one after it; the other pairs change where one of these does.
void append_thresholds(Problem problem, int width, bool widest, bool deterministic, std::vector<Problem>& to) {
  std::optional<plan::Specialization> last;
  bool second = false;
  for (std::int64_t cols = width; cols <= longest_threshold; cols += widest ? width : 2 * width) {
    problem.cols = cols;
    const plan::Specialization now = chosen(problem, deterministic).front();
    const bool fewer_threads = last && last->config.threads > now.config.threads;
    const bool changes = !last || layout(now) != layout(*last) || fewer_threads;
    if (changes && last && !second) {
      to.push_back(problem);
      to.back().cols = last->cols;
    }
    if (changes || second) to.push_back(problem);
    second = changes && problem.in == problem.out;
    last = now;
  }
}

NamedKernel runtime(const Problem& problem, std::string name, const Variant& variant, bool deterministic) {
  plan::Bundle bundle = plan::choose(problem, any_arch, variant, deterministic);
  for (plan::Specialization& s : bundle) s.cols = 0;
  return {std::move(name), std::move(bundle)};
}

Variant by_hand(const char* family, int threads, int vector) {
  Variant variant;
  variant.family = family;
  variant.threads = threads;
  variant.vector = vector;
  return variant;
}

}  // namespace

std::vector<Problem> all_types() {
  std::vector<Problem> problems;
  for (const Types& pair : types) {
    for (const Op op : {Op::softmax, Op::log_softmax})
      problems.push_back({.cols = 0, .in = pair.in, .out = pair.out, .op = op});
  }
  return problems;
}

std::vector<NamedKernel> runtime_kernels(const Problem& problem, bool deterministic) {
  if (problem.layout == Layout::strided) {
    Variant generic;
    generic.name = "generic";
    std::vector<NamedKernel> kernels{runtime(problem, "generic", generic, deterministic),
                                     runtime(problem, "built-in", {}, deterministic)};
    // Wide accesses, which tuning may choose: tiles of a block, and of a cluster.
    if (!deterministic && problem.cols <= longest_runtime_row) {
      kernels.push_back(runtime(problem, "wide tiles, two reads", by_hand("strided", 4, 2), deterministic));
      Variant cluster = by_hand("strided_registers", 16, 4);
      if (plan::widest_vector(problem) < 4) cluster.vector = 2;
      cluster.cluster = 2;
      kernels.push_back(runtime(problem, "wide tiles, cluster", cluster, deterministic));
      if (size_of(problem.in) == 2) {
        cluster.packed = true;
        kernels.push_back(runtime(problem, "wide tiles, cluster, packed", cluster, deterministic));
      }
      // One for all these lengths: 16 warps with 6 columns in registers and 16 in shared memory.
      Variant staged = by_hand("strided_staged", 8, 2);
      staged.cluster = 2;
      staged.elements = 44;
      staged.pieces = 2;
      kernels.push_back(runtime(problem, "staged tiles, cluster", staged, deterministic));
    }
    return kernels;
  }
  const int vector = plan::widest_vector(problem);
  std::vector<NamedKernel> kernels;
  for (const std::string& name : plan::variant_names()) {
    if (name == "v3" && problem.cols > 8192) continue;  // of some types the row does not fit in registers
    Variant variant;
    variant.name = name;
    kernels.push_back(runtime(problem, name, variant, deterministic));
  }
  // Several rows a block, in the families that the named variants give a block a row.
  kernels.push_back(runtime(problem, "safe, rows of 8 threads", by_hand("safe", 8, vector), deterministic));
  kernels.push_back(runtime(problem, "looped, rows of 4 threads", by_hand("looped", 4, vector), deterministic));
  kernels.push_back(runtime(problem, "looped, 2 rows of 64 threads", by_hand("looped", 64, vector), deterministic));
  return kernels;
}

std::vector<Problem> threshold_problems(bool deterministic) {
  std::vector<Problem> problems;
  int turn = 0;
  for (const Types& pair : types) {
    const int widest = plan::widest_vector({.cols = 1, .in = pair.in, .out = pair.out});
    // Only where it is deterministic does the width of an access depend on the length: the narrowest and the
    // widest do.
    for (int width = 1; width <= widest; width *= 2) {
      if (width != 1 && (!deterministic || width != widest)) continue;
      // The operations take turns: none of this depends on them.
      const Op op = turn++ % 2 == 0 ? Op::softmax : Op::log_softmax;
      append_thresholds({.in = pair.in, .out = pair.out, .op = op}, width, !deterministic || width == widest,
                        deterministic, problems);
    }
    // A warp; half and all of the warps that a block may have; more columns than one block holds.
    for (const std::int64_t cols : {1, 8, 9, 127, 129, 256, 257, 513, 1021, 1025, 2048}) {
      if (cols == 2048 && size_of(pair.in) != 2) continue;  // staged, as 1021 is
      const Op op = turn++ % 2 == 0 ? Op::softmax : Op::log_softmax;
      problems.push_back({.cols = cols, .in = pair.in, .out = pair.out, .op = op, .layout = Layout::strided});
    }
  }
  return problems;
}

std::vector<Problem> special_problems() {
  std::vector<Problem> problems;
  for (const std::int64_t cols : {385, 512, 4096, 131072})
    problems.push_back({.cols = cols, .in = DType::f16, .out = DType::f16});
  problems.push_back({.cols = 512, .in = DType::bf16, .out = DType::bf16});
  for (const std::int64_t cols : {2, 3, 4, 5, 33, 1023, 1024, 1025, 4096, 131072, 1 << 22})
    problems.push_back({.cols = cols});
  for (const std::int64_t cols : {3, 1025, 4096})
    problems.push_back({.cols = cols, .in = DType::f64, .out = DType::f64});
  return problems;
}

std::vector<NamedKernel> every_kernel(const Problem& problem, bool deterministic) {
  std::vector<NamedKernel> kernels = runtime_kernels(problem, deterministic);
  // How a kernel that holds a row covers it depends on the row's length: longer ones are not compiled.
  if (problem.cols > longest_runtime_row) {
    std::erase_if(kernels, [](const NamedKernel& k) { return plan::reads_once(k.bundle.front().family); });
  }
  const std::vector<Problem> special = special_problems();
  if (std::find(special.begin(), special.end(), problem) != special.end())
    kernels.push_back({"built-in", chosen(problem, deterministic)});
  return kernels;
}

std::vector<Problem> mutation_problems() {
  // A row in a part of a warp, rows of several warps, whole packets or not; strided rows of one warp, and of
  // several blocks, of which one warp, or more, have no column in the last round.
  return {{.cols = 7},
          {.cols = 599},
          {.cols = 600},
          {.cols = 7, .layout = Layout::strided},
          {.cols = 300, .layout = Layout::strided},
          {.cols = 543, .layout = Layout::strided},
          {.cols = 300, .in = DType::bf16, .out = DType::bf16, .layout = Layout::strided}};
}

plan::Bundle chosen(const Problem& problem, bool deterministic) {
  plan::Bundle bundle = plan::choose(problem, any_arch, {}, deterministic);
  // More rows than a test has may be served by another kernel, which is to be right for few as well.
  for (plan::Specialization& s : bundle) s.least_rows = 0;
  return bundle;
}

}  // namespace jitsoftmax::host_test
