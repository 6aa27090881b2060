#include "bench_report.hpp"

#include <jitsoftmax/version.h>
#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <nlohmann/json.hpp>

#include "cuda/driver.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax::tools {
namespace {

using nlohmann::ordered_json;

double share_of_copy(const Measured& kernel, const Measured& copy) { return copy.cold.median() / kernel.cold.median(); }

double terabytes_a_second(const BenchCase& result, double seconds) {
  return static_cast<double>(result.bytes) / seconds * 1e-12;
}

std::string shape_name(const BenchCase& result) {
  return fmt::format("{}x{}", result.rows, plan::describe(result.problem));
}

ordered_json to_json(const tune::Timing& timing) {
  return {{"median", timing.median()}, {"p10", timing.quantile(0.1)}, {"p90", timing.quantile(0.9)}};
}

ordered_json to_json(const Measured& measured) {
  ordered_json json{{"name", measured.name}, {"kernel", measured.kernel}};
  if (!measured.error.empty()) json["error"] = measured.error;
  if (measured.verdict) json["worst_error_over_tolerance"] = measured.verdict->ratio;
  if (!measured.cold.rounds.empty()) json["cold_seconds"] = to_json(measured.cold);
  if (measured.warm) json["warm_seconds"] = to_json(*measured.warm);
  if (measured.facts) add_facts(json, *measured.facts);
  return json;
}

}  // namespace

BenchReport describe_machine(const cuda::PrimaryContext& context, jit::Compiler& compiler) {
  BenchReport report;
  report.device = cuda::device_name(context.device());
  int version = 0;
  cuda::check(cuda::driver().DriverGetVersion(&version), "cuDriverGetVersion");
  report.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  report.compiler = compiler.version();
  report.library = JITSOFTMAX_VERSION;
  report.multiprocessors = cuda::multiprocessors(context.device());
  report.clock_mhz = cuda::clock_mhz(context.device());
  report.memory_clock_mhz = cuda::memory_clock_mhz(context.device());
  report.memory_bus_bits = cuda::memory_bus_bits(context.device());
  return report;
}

std::string header_text(const BenchReport& report) {
  return fmt::format(
      "{}, {} multiprocessors, clocks up to {} and {} MHz, driver for CUDA {}, NVRTC {}, jitsoftmax {}\n"
      "cold: buffers rotated past the L2; TB/s: bytes read once and written once; share: of the copy\n"
      "{:<28} {:<9} {:>9} {:>9} {:>9} {:>6} {:>6} {:>8}  {}\n",
      report.device, report.multiprocessors, report.clock_mhz, report.memory_clock_mhz, report.driver, report.compiler,
      report.library, "shape", "kernel", "median us", "p10", "p90", "TB/s", "share", "warm us", "specialization");
}

std::string case_text(const BenchCase& result) {
  std::string text;
  const auto line = [&](const Measured& measured) {
    if (!measured.error.empty()) {
      text += fmt::format("{:<28} {:<9} {}\n", shape_name(result), measured.name, measured.error);
      return;
    }
    const std::string warm = measured.warm ? fmt::format("{:.2f}", measured.warm->median() * 1e6) : "-";
    text += fmt::format("{:<28} {:<9} {:>9.2f} {:>9.2f} {:>9.2f} {:>6.3f} {:>6.3f} {:>8}  {}\n", shape_name(result),
                        measured.name, measured.cold.median() * 1e6, measured.cold.quantile(0.1) * 1e6,
                        measured.cold.quantile(0.9) * 1e6, terabytes_a_second(result, measured.cold.median()),
                        share_of_copy(measured, result.copy), warm, measured.kernel);
  };
  line(result.copy);
  for (const Measured& measured : result.kernels) line(measured);
  return text;
}

ordered_json to_document(const BenchReport& report) {
  ordered_json json{{"device", report.device},
                    {"driver_cuda", report.driver},
                    {"nvrtc", report.compiler},
                    {"jitsoftmax", report.library},
                    {"multiprocessors", report.multiprocessors},
                    {"clock_mhz", report.clock_mhz},
                    {"memory_clock_mhz", report.memory_clock_mhz},
                    {"memory_bus_bits", report.memory_bus_bits},
                    {"cases", ordered_json::array()}};
  for (const BenchCase& result : report.cases) {
    ordered_json row{{"rows", result.rows},          {"problem", plan::describe(result.problem)},
                     {"cols", result.problem.cols},  {"bytes", result.bytes},
                     {"copy", to_json(result.copy)}, {"kernels", ordered_json::array()}};
    if (result.clocks)
      row["clocks_mhz"] = {{"multiprocessors", result.clocks->multiprocessors_mhz},
                           {"memory", result.clocks->memory_mhz}};
    for (const Measured& measured : result.kernels) {
      row["kernels"].push_back(to_json(measured));
      if (measured.error.empty()) row["kernels"].back()["share_of_copy"] = share_of_copy(measured, result.copy);
    }
    json["cases"].push_back(std::move(row));
  }
  return json;
}

std::string to_json(const BenchReport& report) { return to_document(report).dump(1) + "\n"; }

std::string to_csv(const BenchReport& report) {
  std::string text = "problem,rows,bytes,name,median_us,p10_us,p90_us,warm_us,share_of_copy,kernel\n";
  for (const BenchCase& result : report.cases) {
    const auto line = [&](const Measured& measured) {
      if (!measured.error.empty()) return;
      text += fmt::format("{},{},{},{},{:.3f},{:.3f},{:.3f},{},{:.4f},\"{}\"\n", plan::describe(result.problem),
                          result.rows, result.bytes, measured.name, measured.cold.median() * 1e6,
                          measured.cold.quantile(0.1) * 1e6, measured.cold.quantile(0.9) * 1e6,
                          measured.warm ? fmt::format("{:.3f}", measured.warm->median() * 1e6) : "",
                          share_of_copy(measured, result.copy), measured.kernel);
    };
    line(result.copy);
    for (const Measured& measured : result.kernels) line(measured);
  }
  return text;
}

}  // namespace jitsoftmax::tools
