#include "plan/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace jitsoftmax::plan {
namespace {

// Of an H200. Seconds, bytes, bytes a second.
constexpr int multiprocessors = 132;
constexpr double bandwidth = 4.35e12;              // what loads and stores of kernels reach
constexpr double copy_bandwidth = 4.25e12;         // what the fastest copy reaches
constexpr double copy_launch = 1.45e-6;            // of a copy, first bytes included
constexpr double launch = 0.75e-6;                 // of a kernel
constexpr double latency = 0.85e-6;                // of a load, under load
constexpr double block_agreement = 0.32e-6;        // by a barrier of the block
constexpr double cluster_agreement = 0.8e-6;       // by what blocks send each other
constexpr double low_latency_gain = 0.1e-6;        // of that
constexpr double one_multiprocessor = 60e9;        // that one alone moves
constexpr double cluster_block_start = 2.4e-9;     // between the starts of two blocks that are in clusters
constexpr double lanes_a_second = 128 * 1.755e9;   // instructions of a multiprocessor's lanes
constexpr double l2_for_rows = 20e6;               // of 60 MB: what rows under way may take to be found there again
constexpr std::int64_t warps_that_send_alone = 8;  // in a cluster: with more they merge by a barrier first

int reads_of(Family family) noexcept { return family == Family::safe ? 3 : reads_once(family) ? 1 : 2; }

// Of one element's way through the kernel; each further read repeats most of it.
double instructions(const Specialization& s) noexcept {
  const double once = s.in == DType::f64 ? 60 : size_of(s.in) == 2 ? 16 : 12;
  const int reads = reads_of(s.family);
  return reads == 1 ? once : once * 0.8 * reads;
}

double agreement(const Specialization& s) noexcept {
  const kernels::Config& c = s.config;
  if (c.threads <= kernels::warp_size && c.cluster == 1) return 0;
  const bool by_barrier = c.cluster == 1 || c.threads / kernels::warp_size > warps_that_send_alone;
  const double once = (by_barrier ? block_agreement : 0) + (c.cluster > 1 ? cluster_agreement : 0) -
                      (c.low_latency ? low_latency_gain : 0);
  return s.family == Family::safe ? 2 * once : once;
}

// Loads of a thread that wait for one another: all that a thread holds are under way at once.
double rounds_of_loads(const Problem& problem, const Specialization& s) noexcept {
  const int reads = reads_of(s.family);
  if (reads == 1) return 1;
  const double columns = static_cast<double>(s.config.threads) * s.config.elements;
  return reads * std::max(1.0, std::ceil(static_cast<double>(problem.cols) / columns));
}

double norm(std::initializer_list<double> terms) noexcept {
  const double most = std::max(terms);
  double sum = 0;
  for (const double term : terms) sum += std::pow(term / most, 4);
  return most * std::sqrt(std::sqrt(sum));
}

}  // namespace

std::optional<double> predicted_share(const Problem& problem, std::int64_t rows, const Specialization& s,
                                      const Occupancy& occupancy, const Arch& arch) noexcept {
  const bool modelled = s.family == Family::registers || s.family == Family::looped || s.family == Family::safe;
  if (!modelled || arch.major != 9 || occupancy.blocks == 0) return std::nullopt;
  const double elements = static_cast<double>(problem.cols) * static_cast<double>(rows);
  const double bytes = elements * (size_of(problem.in) + size_of(problem.out));
  const double slots = static_cast<double>(occupancy.blocks) * multiprocessors;
  double blocks = std::ceil(static_cast<double>(rows) / rows_of_tile(s)) * s.config.cluster;
  if (s.config.persistent) blocks = std::min(blocks, slots);
  const double waves = std::max(1.0, blocks / slots);
  const double of_block = bytes / blocks;

  const double alone = latency + agreement(s);
  const double more_rounds = latency * (rounds_of_loads(problem, s) - 1);
  const double lifetime = alone + more_rounds + of_block * multiprocessors / bandwidth;
  const int reads = reads_of(s.family);
  const bool read_again = reads > 1 && std::min(blocks, slots) * of_block / 2 > l2_for_rows;
  const double time =
      launch + alone +
      norm({bytes * (read_again ? (reads + 1) / 2.0 : 1.0) / bandwidth, more_rounds + (waves - 1) * lifetime,
            elements * instructions(s) / (multiprocessors * lanes_a_second),
            bytes / (std::min<double>(multiprocessors, blocks) * one_multiprocessor),
            s.config.cluster > 1 ? blocks * cluster_block_start : 0});
  return (copy_launch + bytes / copy_bandwidth) / time;
}

}  // namespace jitsoftmax::plan
