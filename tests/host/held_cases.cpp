// The kernels that hold a row, or what they can of it, between one read and one write, by hand.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "host/cases.hpp"
#include "plan/candidates.hpp"

namespace jitsoftmax::host_test {
namespace {

struct Way {
  plan::Family family;
  int threads;
  int cluster;  // blocks a row
  int packets;  // of a thread
  int pieces = 0;
  bool packed = false;
  bool low_latency = false;
  bool staggered = false;

  [[nodiscard]] std::string name() const {
    return std::string(plan::name_of(family)) + " of " + std::to_string(cluster) + " * " + std::to_string(threads) +
           " threads with " + std::to_string(packets) + " packets" + (packed ? ", packed" : "") +
           (low_latency ? ", of low latency" : "") + (staggered ? ", staggered" : "") +
           (pieces != 0 ? ", " + std::to_string(pieces) + " pieces" : "");
  }
};

constexpr auto registers = plan::Family::registers;
constexpr auto staged = plan::Family::staged;
constexpr auto split = plan::Family::split;
constexpr auto counted = plan::Family::counted;
constexpr Way ways[] = {
    {registers, 2, 1, 3},
    {registers, 8, 1, 1},
    {registers, 32, 1, 2},
    {registers, 96, 1, 1},
    {registers, 64, 2, 2},
    {registers, 32, 4, 1},
    {registers, 96, 16, 1},  // more partials than lanes
    {registers, 64, 2, 2, 0, false, true},
    {registers, 32, 4, 3, 0, false, true},
    {registers, 96, 16, 1, 0, false, true},
    {registers, 64, 2, 1, 0, false, false, true},
    {registers, 64, 2, 1, 0, false, true, true},
    {registers, 8, 1, 2, 0, true},
    {registers, 64, 1, 4, 0, true},
    {registers, 32, 2, 3, 0, true},
    {staged, 32, 1, 1, 1},
    {staged, 96, 1, 4, 2},
    {staged, 64, 1, 4, 4},
    {staged, 64, 2, 2, 1},
    {staged, 32, 8, 4, 2},
    {staged, 64, 8, 1, 1},
    {split, 64, 2, 2},
    {split, 32, 3, 1},
    {split, 32, 9, 2},  // more than there is room for
    {counted, 8, 1, 3},
    {counted, 64, 1, 4},
    {counted, 64, 2, 2},
};

// A number of columns between 1 and the most that fit; they take turns.
std::int64_t length(const Way& way, int vector, int turn) {
  const std::int64_t round = std::int64_t{way.threads} * vector;  // of one block
  const std::int64_t whole = round * way.cluster * way.packets;
  switch (turn % 8) {
    case 0:
      return whole + vector - 1;  // the most
    case 1:
      return whole;
    case 2:
      return std::max<std::int64_t>(round - 3, 1);  // further blocks get no packet
    case 3:
      return whole - 1;
    case 4:
      return vector + 1;
    case 5:
      return std::max<std::int64_t>(whole / 2, 1);  // threads without one of their packets, still aligned
    case 6:
      return std::min(round + 2 * vector - 1, whole);  // the next block, or round, has one packet
    default:
      return std::max(vector - 1, 1);  // not one packet
  }
}

std::optional<HeldCase> held_case(const Problem& problem, const Way& way) {
  const int vector = plan::widest_vector(problem);
  const plan::Specialization s =
      plan::specialization(problem, way.family,
                           {.threads = way.threads,
                            .rows = way.threads < kernels::warp_size ? kernels::warp_size / way.threads : 1,
                            .cluster = way.family == split ? 1 : way.cluster,
                            .vector = vector,
                            .elements = way.packets * vector,
                            .packed = way.packed,
                            .blocked = way.family == split,
                            .low_latency = way.low_latency,
                            .staggered = way.staggered,
                            .pieces = way.pieces});
  if (!plan::illegal(s).empty()) return std::nullopt;
  return HeldCase{problem, {way.name(), plan::bundle_of(s, false)}, {way.name(), plan::bundle_of(s, true)}};
}

}  // namespace

std::vector<HeldCase> held_cases() {
  std::vector<HeldCase> cases;
  int turn = 0;
  const auto add = [&](const Problem& problem, const Way& way) {
    if (const auto held = held_case(problem, way)) cases.push_back(*held);
  };
  for (Problem problem : all_types()) {
    // The operations take turns with the lengths, but for two types that get most of the lengths.
    const bool many = problem.in == problem.out && (problem.in == DType::f32 || problem.in == DType::bf16);
    for (const Way& way : ways) {
      for (int i = 0; i < (many ? 2 : 1); ++i, ++turn) {
        if (!many && (turn % 2 == 0) != (problem.op == Op::softmax)) continue;
        problem.cols = length(way, plan::widest_vector(problem), turn);
        add(problem, way);
      }
      ++turn;
    }
  }
  for (const DType type : {DType::f32, DType::bf16}) {
    const int vector = type == DType::f32 ? 4 : 8;
    for (const std::int64_t cols : {333, 1025, 4097}) {
      const Problem problem{.cols = cols, .in = type, .out = type};
      const auto packets = static_cast<int>((cols / vector - 1) / 64 + 1);  // of each of 64 threads
      add(problem, {registers, 64, 2, packets / 2 + 1});
      if (cols == 4097)
        add(problem, {registers, 320, 2, packets / 10 + 1});  // blocks of many warps merge before they send
      add(problem, {registers, 64, 1, packets, 0, type == DType::bf16});
      add(problem, {staged, 64, 1, (packets + 1) / 2 * 2, 2});
      add(problem, {staged, 64, 2, packets / 2 + 1, 1});
    }
  }
  return cases;
}

std::vector<HeldCase> mutation_cases() {
  std::vector<HeldCase> cases;
  for (const Way& way : {Way{registers, 64, 2, 2}, Way{registers, 96, 16, 1}, Way{registers, 320, 2, 1},
                         Way{registers, 64, 2, 2, 0, false, true}, Way{registers, 96, 16, 1, 0, false, true},
                         Way{registers, 64, 1, 2, 0, true}, Way{staged, 64, 2, 2, 2}, Way{staged, 64, 1, 2, 2},
                         Way{split, 32, 2, 2}, Way{split, 32, 9, 1}, Way{counted, 64, 1, 3}}) {
    for (const int turn : {0, 3, 6}) {
      if (const auto held = held_case({.cols = length(way, 4, turn)}, way)) cases.push_back(*held);
    }
  }
  return cases;
}

}  // namespace jitsoftmax::host_test
