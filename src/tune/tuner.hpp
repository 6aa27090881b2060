// Tuner: takes candidates from nothing to a ranking. Threads build some while the device times those that
// are ready. It knows neither compiler nor device.
#pragma once

#include <cstddef>
#include <functional>
#include <jitsoftmax/error.hpp>
#include <string>
#include <vector>

#include "tune/search.hpp"
#include "tune/timing.hpp"

namespace jitsoftmax::tune {

// What is built of a candidate.
enum class Part {
  trial,  // the kernel that is timed
  whole,  // all that a user of the candidate needs, as it will be used: for those that may win
};

// What tuning needs done. Candidates are numbers. A function that throws Error means that this candidate
// failed now and may do better another time.
class Workshop {
 public:
  virtual ~Workshop() = default;

  // Makes the code of a part of the candidate. Returns why it is out for good, as a clause; empty: it is not.
  // Called from several threads at once.
  virtual std::string build(std::size_t candidate, Part part) = 0;

  // The others are called from the thread that tunes, for what was built.
  // Runs that part once and verifies the result; returns as build() does.
  virtual std::string check(std::size_t candidate, Part part) = 0;
  virtual std::vector<Timing> time(const std::vector<std::size_t>& candidates, int rounds) = 0;
};

struct TunerOptions {
  SearchOptions search = {};
  int jobs = 1;               // builds at once
  bool anchor_known = false;  // candidate 0 has times already: alone it is not timed again
  // After each candidate that is ready to be timed, or was dropped on the way there; returning false stops.
  std::function<bool(std::size_t candidate, std::size_t done)> progress = {};
};

struct Dropped {
  std::size_t candidate = 0;
  std::string why;
  bool for_good = false;
};

struct Findings {
  std::vector<Ranked> ranking;  // of all that were timed; empty if it was stopped
  std::vector<Dropped> dropped;
  bool stopped = false;
};

// Candidates 0 to count - 1; the first is the anchor of the search, unless it fails. One that fails is
// dropped and does not stop the others. Throws Error if none that could win is left, and for what concerns
// them all alike: no compiler, no context.
[[nodiscard]] Findings rank(Workshop& workshop, std::size_t count, const TunerOptions& options);

}  // namespace jitsoftmax::tune
