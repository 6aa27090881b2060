// Record: what tuning has found for one problem, rows bucket, device model and driver. Plain values and
// pure functions.
#pragma once

#include <jitsoftmax/problem.hpp>
#include <jitsoftmax/tuning.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/tuned.hpp"
#include "tune/search.hpp"

namespace jitsoftmax::tune {

struct RecordKey {
  Problem problem;
  plan::RowsBucket bucket = plan::RowsBucket::many;
  std::string device;    // its model, "NVIDIA H200"
  int driver_major = 0;  // of the CUDA version that the driver supports

  friend bool operator==(const RecordKey&, const RecordKey&) = default;
};

// "4096 f32, many rows, on NVIDIA H200 with a driver of CUDA 13": for people, and the name of its file.
[[nodiscard]] std::string describe(const RecordKey& key);

// What is known of one specialization: its times, or why it is never chosen.
struct RecordEntry {
  std::string specialization;  // spelled with its alignment left open
  Summary seconds = {};
  bool finalist = false;
  std::string rejected = {};  // as a clause; empty: it has times
};

struct Record {
  std::int64_t rows = 0;  // that all of its times were measured with
  TuneEffort effort = TuneEffort::quick;
  std::vector<RecordEntry> entries = {};  // each specialization once

  [[nodiscard]] const RecordEntry* find(const std::string& specialization) const noexcept;
};

// Everything that either of them knows, on one scale: times of two sessions are told by an entry that both
// have. Where they differ, the greater effort holds, else `first`.
[[nodiscard]] Record merge(const Record& first, const Record& second);

// The finalist that is to be used: as fastest(), `built_in` wins ties. Null where nothing was timed.
[[nodiscard]] const RecordEntry* winner(const Record& record, const std::string& built_in);

// What there is to find out: of the candidates those that no record of at least this effort has, preceded
// by its winner, which they are timed against. The built-in choice comes first where there is no record.
// Empty: nothing. The winner may be none of the candidates.
[[nodiscard]] std::vector<std::string> to_time(const std::vector<std::string>& candidates, const std::string& built_in,
                                               const std::optional<Record>& record, TuneEffort effort);

}  // namespace jitsoftmax::tune
