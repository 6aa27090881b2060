// What a benchmark says: lines for people, JSON and CSV for machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench_case.hpp"
#include "cuda/device.hpp"
#include "jit/compiler.hpp"

namespace jitsoftmax::tools {

struct BenchReport {
  std::string device;
  std::string driver;    // "13.0", the CUDA version that the driver supports
  std::string compiler;  // NVRTC's version
  std::string library;   // ours
  int multiprocessors = 0;
  int clock_mhz = 0;         // of the multiprocessors, at most
  int memory_clock_mhz = 0;  // at most
  int memory_bus_bits = 0;
  std::vector<BenchCase> cases;

  // Theoretical: the bus moves bits at both edges of the clock.
  [[nodiscard]] double peak_bytes_a_second() const noexcept { return memory_bus_bits / 8.0 * memory_clock_mhz * 2e6; }
};

// The report of a device, without cases yet.
[[nodiscard]] BenchReport describe_machine(const cuda::PrimaryContext& context, jit::Compiler& compiler);

[[nodiscard]] std::string header_text(const BenchReport& report);
[[nodiscard]] std::string case_text(const BenchCase& result);
[[nodiscard]] nlohmann::ordered_json to_document(const BenchReport& report);
[[nodiscard]] std::string to_json(const BenchReport& report);
[[nodiscard]] std::string to_csv(const BenchReport& report);

}  // namespace jitsoftmax::tools
