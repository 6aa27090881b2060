/// @file
/// Tuning: how kernels are measured on a GPU, and what came of it. Plain values of Engine::autotune.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <jitsoftmax/problem.hpp>
#include <string>
#include <vector>

namespace jitsoftmax {

/// How carefully. A record that was made with the greater effort serves both.
enum class TuneEffort : std::uint8_t {
  quick,  ///< seconds a shape: short measurements, few rounds
  full,
};

/// How far the tuning is.
struct TuneProgress {
  std::string what;       ///< the candidate that was measured or ruled out last, as it is spelled
  std::size_t done = 0;   ///< candidates that were
  std::size_t total = 0;  ///< of so many
};

/// How to tune.
struct TuneOptions {
  TuneEffort effort = TuneEffort::quick;  ///< how carefully
  int jobs = 0;                           ///< compiles at once; 0: all cores but the one that launches
  /// Called from the thread that tunes; returning false ends the tuning at the next opportunity, and
  /// nothing of it is kept but the compiled kernels.
  std::function<bool(const TuneProgress&)> progress;
};

/// What became of one candidate.
struct TuneItem {
  std::string specialization;  ///< its spelling, with the alignment of rows left open
  double median = 0;           ///< seconds a launch, over buffers rotated past the L2 cache as far as 512 of them
                               ///< reach; 0: it was not timed
  double p10 = 0;              ///< the 10th percentile
  double p90 = 0;              ///< the 90th percentile
  int rounds = 0;              ///< that it was last timed for
  bool timed = false;          ///< now, and not in an earlier tune
  std::string rejected;        ///< why it cannot be chosen, as a clause; empty: it can
  bool failed = false;         ///< to compile or to launch, now: it is tried again another time
};

/// What came of a tuning.
struct TuneReport {
  Problem problem;              ///< that was tuned
  std::int64_t rows = 0;        ///< that were measured; a record is for all numbers of rows of their kind
  bool few_rows = false;        ///< of which kind: up to 64, or more
  std::string device;           ///< the GPU's model
  std::string winner;           ///< what is used from now on; empty: nothing was measured
  std::string built_in;         ///< what is used without a record
  std::vector<TuneItem> items;  ///< the winner, then the faster before the slower, then those ruled out
  bool stopped = false;         ///< by the progress callback
  bool kept = false;            ///< the record is in the cache directory
  double seconds = 0;           ///< that it took

  /// Candidates that this call timed.
  [[nodiscard]] std::size_t timed() const noexcept {
    std::size_t n = 0;
    for (const TuneItem& item : items) n += item.timed ? 1 : 0;
    return n;
  }
  /// The candidate with that spelling; null: there is none. The report owns it.
  [[nodiscard]] const TuneItem* find(const std::string& specialization) const noexcept {
    for (const TuneItem& item : items) {
      if (item.specialization == specialization) return &item;
    }
    return nullptr;
  }
};

}  // namespace jitsoftmax
