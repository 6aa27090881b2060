// Search: which of many kernels is the fastest, found with little time spent on slow ones. Pure: it knows
// neither the device nor what a candidate is, only a function that times some of them together.
//
// Times are comparable within one call of that function alone. So one candidate, the anchor, takes part in
// every call, and what is kept is the time relative to it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tune/timing.hpp"

namespace jitsoftmax::tune {

// Times these candidates in interleaved rounds: one Timing each, in the order of `which`.
using TimeTogether = std::function<std::vector<Timing>(const std::vector<std::size_t>& which, int rounds)>;

struct SearchOptions {
  int first_rounds = 2;  // of everybody
  double cut = 1.5;      // slower than the fastest by this factor in the first rounds: out
  std::size_t finalists = 6;
  int final_rounds = 15;  // of the finalists, together
};

// What is known of a candidate: seconds a launch on the scale of the final rounds.
struct Summary {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  int rounds = 0;  // of the last call that it took part in
};

struct Ranked {
  std::size_t candidate = 0;
  Summary seconds;
  bool finalist = false;
};

// Successive halving: everybody is timed briefly, the faster half for twice as long, and so on.
class Search {
 public:
  Search(TimeTogether time, const SearchOptions& options);

  // First rounds of some candidates, each of which is added once. The first of all is the anchor.
  void add(const std::vector<std::size_t>& candidates);

  // The rest: all candidates, finalists first, the faster before the slower. The anchor is a finalist.
  [[nodiscard]] std::vector<Ranked> finish();

 private:
  struct Entry {
    std::size_t candidate = 0;
    Summary relative;  // to the anchor's median in the same call
    bool finalist = false;
  };

  void measure(const std::vector<Entry*>& field, int rounds);
  [[nodiscard]] static bool faster(const Entry* a, const Entry* b) noexcept;

  TimeTogether time_;
  SearchOptions options_;
  std::vector<Entry> entries_;  // the anchor first
  double anchor_seconds_ = 0;   // its median in the last call
};

// Differences below this are noise: medians of two sessions differ by as much.
constexpr double tolerance = 0.01;

struct Contender {
  std::string name;
  double seconds = 0;
};

// The fastest, by a rule that noise does not move much: of all within the tolerance of the least time
// `preferred` (the built-in choice), else the first in the order of names. `contenders` is not empty.
[[nodiscard]] std::size_t fastest(std::span<const Contender> contenders, const std::string& preferred);

}  // namespace jitsoftmax::tune
