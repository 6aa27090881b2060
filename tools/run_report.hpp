// What `run` has to say, as lines or as JSON.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string>
#include <vector>

#include "npy_header.hpp"
#include "verify.hpp"

namespace jitsoftmax::tools {

struct RunReport {
  std::string input;
  std::string output;
  npy::Header in;
  npy::Header out;

  bool empty = false;                // an array without elements: nothing below but `written` applies
  std::string device;                // "cuda:0", "host"
  std::string device_name;           // "NVIDIA H200 (cuda:0)", "the CPU (2 threads)"
  std::vector<WarmupItem> warmed;    // what was compiled for an architecture beside the computation
  std::string not_warmed;            // why nothing could be, where that is no error
  std::vector<std::string> kernels;  // specializations of the kernel that computed
  std::vector<Origin> origins;       // who chose them
  Stats stats;
  double seconds = 0;  // of the computation, with copies to the device and back

  std::optional<Verdict> verdict;
  bool written = false;
};

[[nodiscard]] std::string to_text(const RunReport& report, bool verbose);
[[nodiscard]] std::string to_json(const RunReport& report);

// "registers<...> for sm_90"
[[nodiscard]] std::string describe(const WarmupItem& item);

// "compiled", "cached", "failed"
[[nodiscard]] const char* name_of(WarmupOutcome outcome) noexcept;

}  // namespace jitsoftmax::tools
