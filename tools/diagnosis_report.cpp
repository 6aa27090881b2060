#include "diagnosis_report.hpp"

#include <jitsoftmax/version.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "exit_code.hpp"

namespace jitsoftmax::tools {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Health health) noexcept {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warn:
      return "warn";
    case Health::missing:
      break;
  }
  return "missing";
}

const char* name_of(Access access) noexcept {
  return access == Access::layer ? "read-only layer" : "writable directory";
}

std::string cuda_name(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string plural(std::uint64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

void add_driver(std::vector<Finding>& all, const DriverFacts& driver) {
  const std::string version = driver.version.empty() ? "" : "driver " + driver.version;
  if (!driver.missing.empty()) {
    all.push_back({Health::missing, "driver: " + driver.missing});
    if (!version.empty()) all.push_back({Health::warn, "driver: the kernel has the module of " + version});
    return;
  }
  all.push_back({Health::ok, fmt::format("driver: {}, of CUDA {}{}{}", driver.library, cuda_name(driver.cuda_version),
                                         version.empty() ? "" : ", ", version)});
  for (const Gpu& gpu : driver.gpus) {
    all.push_back({Health::ok, fmt::format("GPU {}: {}, {}, {}", gpu.ordinal, gpu.name, gpu.arch.name(),
                                           plural(static_cast<std::uint64_t>(gpu.multiprocessors), "multiprocessor",
                                                  "multiprocessors"))});
  }
  if (!driver.fault.empty()) all.push_back({Health::missing, "GPU: " + driver.fault});
}

void add_nvrtc(std::vector<Finding>& all, const NvrtcFacts& nvrtc, const DriverFacts& driver) {
  if (!nvrtc.missing.empty()) {
    all.push_back({Health::missing, "NVRTC: " + nvrtc.missing});
    return;
  }
  all.push_back({Health::ok, fmt::format("NVRTC: {}, version {}", nvrtc.library, nvrtc.version)});
  if (nvrtc.builtins.empty()) {
    all.push_back({nvrtc.works() ? Health::ok : Health::warn, "NVRTC's builtins: left to the loader"});
  } else {
    all.push_back({Health::ok, "NVRTC's builtins: " + nvrtc.builtins});
  }
  if (nvrtc.works()) {
    all.push_back({Health::ok, fmt::format("trial: an empty kernel for {} compiled in {:.1f} ms",
                                           nvrtc.trial_arch.name(), 1e3 * *nvrtc.trial_seconds)});
  } else {
    all.push_back({Health::missing, "trial: " + nvrtc.trial_fault});
  }
  if (!nvrtc.warning.empty()) all.push_back({Health::warn, "trial: " + nvrtc.warning});
  if (driver.missing.empty() && std::atoi(nvrtc.version.c_str()) > driver.cuda_version / 1000) {
    all.push_back({Health::warn, fmt::format("NVRTC {} is newer than the driver of CUDA {}, which may refuse what it "
                                             "makes: update the driver, or let JITSOFTMAX_NVRTC name an older NVRTC",
                                             nvrtc.version, cuda_name(driver.cuda_version))});
  }
}

void add_directory(std::vector<Finding>& all, const ExaminedDirectory& directory) {
  const std::string what = fmt::format("cache, {} {}: ", name_of(directory.access), directory.path);
  if (!directory.refused.empty()) {
    all.push_back({Health::warn, what + "refused: it " + directory.refused});
    return;
  }
  if (!directory.unwritable.empty()) {
    all.push_back({Health::warn, what + "it " + directory.unwritable +
                                     ". New kernels are kept in memory only: make it writable, or name another one "
                                     "(--cache-dir, JITSOFTMAX_CACHE_DIR)"});
  }
  if (!directory.exists) {
    if (directory.access == Access::layer) {
      all.push_back({Health::warn, what + "does not exist"});
    } else if (directory.unwritable.empty()) {
      all.push_back({Health::ok, what + "does not exist yet; the first write creates it"});
    }
    return;
  }
  if (directory.unwritable.empty() || directory.entries > 0) {
    const bool writable = directory.access == Access::writable && directory.unwritable.empty();
    all.push_back({Health::ok, fmt::format("{}trusted{}, {}, {:.1f} KB: it {}", what, writable ? ", writable" : "",
                                           plural(directory.entries, "entry", "entries"),
                                           static_cast<double>(directory.bytes) / 1e3, directory.trusted)});
  }
  if (directory.distrusted > 0) {
    all.push_back(
        {Health::warn, fmt::format("{}{} refused, the first: {}", what,
                                   plural(directory.distrusted, "entry is", "entries are"), directory.first_distrust)});
  }
  for (const cache::Fault& fault : directory.faults) {
    all.push_back({Health::warn, fmt::format("{}{} is not used: it {}", what, fault.path, fault.reason)});
  }
}

void add_cache(std::vector<Finding>& all, const std::vector<ExaminedDirectory>& cache) {
  bool writable = false;
  for (const ExaminedDirectory& directory : cache) {
    add_directory(all, directory);
    writable = writable || directory.access == Access::writable;
  }
  if (!writable) {
    all.push_back({Health::warn,
                   "cache: no writable directory, so kernels are kept in memory only: set --cache-dir or "
                   "JITSOFTMAX_CACHE_DIR, or HOME"});
  }
}

void add_owners(std::vector<Finding>& all, const cache::Owners& owners) {
  if (owners.empty()) return;
  all.push_back(
      {Health::ok, fmt::format("cache: trusted beside this user and root: user {}", fmt::join(owners, ", "))});
}

void add_records(std::vector<Finding>& all, const std::vector<ExaminedDirectory>& cache) {
  std::map<std::pair<std::string, int>, std::uint64_t> used;
  std::vector<Finding> ignored;
  for (const ExaminedDirectory& directory : cache) {
    for (const tune::RecordFile& record : directory.records) {
      if (record.ignored.empty()) {
        ++used[{record.origin.device, record.origin.driver_major}];
      } else {
        ignored.push_back({Health::warn, "tuning: " + record.path + " is not used: it " + record.ignored});
      }
    }
  }
  for (const auto& [origin, count] : used) {
    all.push_back({Health::ok, fmt::format("tuning: {} of {} with a driver of CUDA {}",
                                           plural(count, "record", "records"), origin.first, origin.second)});
  }
  if (used.empty()) all.push_back({Health::ok, "tuning: no records in use; the built-in choice of kernels is"});
  all.insert(all.end(), ignored.begin(), ignored.end());
}

void add_settings(std::vector<Finding>& all, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    const std::string text = fmt::format("environment: {}={}", setting.name, setting.value);
    if (setting.complaint.empty()) {
      all.push_back({Health::ok, text});
    } else {
      all.push_back({Health::warn, text + ": " + setting.complaint});
    }
  }
  if (settings.empty()) all.push_back({Health::ok, "environment: no JITSOFTMAX_* is set"});
}

Finding summary(const Diagnosis& found) {
  const bool all = found.can_compile() && found.can_launch() && found.can_cache();
  const Health health = exit_code_of(found) != exit_code::done ? Health::missing : all ? Health::ok : Health::warn;
  return {health,
          fmt::format("in all: {} compile, {} launch on a GPU, {} cache", found.can_compile() ? "can" : "cannot",
                      found.can_launch() ? "can" : "cannot", found.can_cache() ? "can" : "cannot")};
}

Json json_of(const DriverFacts& driver) {
  Json gpus = Json::array();
  for (const Gpu& gpu : driver.gpus) {
    gpus.push_back({{"ordinal", gpu.ordinal},
                    {"name", gpu.name},
                    {"arch", gpu.arch.name()},
                    {"multiprocessors", gpu.multiprocessors}});
  }
  Json json{{"found", driver.missing.empty()}};
  if (!driver.missing.empty()) json["error"] = driver.missing;
  if (!driver.version.empty()) json["version"] = driver.version;
  if (driver.missing.empty()) {
    json["library"] = driver.library;
    json["cuda"] = cuda_name(driver.cuda_version);
  }
  if (!driver.fault.empty()) json["gpu_error"] = driver.fault;
  json["gpus"] = std::move(gpus);
  return json;
}

Json json_of(const NvrtcFacts& nvrtc) {
  Json json{{"found", nvrtc.missing.empty()}};
  if (!nvrtc.missing.empty()) {
    json["error"] = nvrtc.missing;
    return json;
  }
  json["library"] = nvrtc.library;
  json["version"] = nvrtc.version;
  json["builtins"] = nvrtc.builtins;
  Json trial{{"arch", nvrtc.trial_arch.name()}, {"works", nvrtc.works()}};
  if (nvrtc.works()) trial["seconds"] = *nvrtc.trial_seconds;
  if (!nvrtc.trial_fault.empty()) trial["error"] = nvrtc.trial_fault;
  json["trial"] = std::move(trial);
  return json;
}

Json json_of(const ExaminedDirectory& directory) {
  Json records = Json::array();
  for (const tune::RecordFile& record : directory.records) {
    Json json{{"path", record.path}, {"used", record.ignored.empty()}};
    if (record.ignored.empty()) {
      json["device"] = record.origin.device;
      json["driver_major"] = record.origin.driver_major;
    } else {
      json["reason"] = record.ignored;
    }
    records.push_back(std::move(json));
  }
  Json json{{"path", directory.path},
            {"access", directory.access == Access::layer ? "read" : "write"},
            {"exists", directory.exists},
            {"trusted", directory.exists && directory.refused.empty()}};
  if (!directory.refused.empty()) json["reason"] = directory.refused;
  if (directory.access == Access::writable) {
    json["writable"] = directory.refused.empty() && directory.unwritable.empty();
    if (!directory.unwritable.empty()) json["write_error"] = directory.unwritable;
  }
  json["entries"] = directory.entries;
  json["bytes"] = directory.bytes;
  json["refused_entries"] = directory.distrusted;
  json["refused_folders"] = directory.faults.size();
  json["records"] = std::move(records);
  return json;
}

}  // namespace

int exit_code_of(const Diagnosis& diagnosis) noexcept {
  return diagnosis.can_compile() || diagnosis.can_launch() ? exit_code::done : exit_code::no_compiler;
}

std::vector<Finding> findings(const Diagnosis& diagnosis) {
  std::vector<Finding> all{{Health::ok, "jitsoftmax " JITSOFTMAX_VERSION}};
  add_driver(all, diagnosis.driver);
  add_nvrtc(all, diagnosis.nvrtc, diagnosis.driver);
  add_cache(all, diagnosis.cache);
  add_owners(all, diagnosis.trusted_owners);
  add_records(all, diagnosis.cache);
  add_settings(all, diagnosis.settings);
  all.push_back({Health::ok, "CPU: " + diagnosis.cpu + " loops"});
  all.push_back(summary(diagnosis));
  return all;
}

std::string to_text(const Diagnosis& diagnosis) {
  std::string page;
  for (const auto& [health, text] : findings(diagnosis)) {
    page += fmt::format("{:<8} ", name_of(health));
    for (const char c : text) {
      page += c;
      if (c == '\n') page.append(9, ' ');
    }
    page += '\n';
  }
  return page;
}

std::string to_json(const Diagnosis& diagnosis) {
  Json lines = Json::array();
  for (const auto& [health, text] : findings(diagnosis)) {
    lines.push_back({{"health", name_of(health)}, {"text", text}});
  }
  Json cache = Json::array();
  for (const ExaminedDirectory& directory : diagnosis.cache) cache.push_back(json_of(directory));
  Json environment = Json::object();
  for (const Setting& setting : diagnosis.settings) environment[setting.name] = setting.value;
  const Json json{{"version", JITSOFTMAX_VERSION},
                  {"can_compile", diagnosis.can_compile()},
                  {"can_launch", diagnosis.can_launch()},
                  {"can_cache", diagnosis.can_cache()},
                  {"driver", json_of(diagnosis.driver)},
                  {"nvrtc", json_of(diagnosis.nvrtc)},
                  {"cache", std::move(cache)},
                  {"trusted_owners", diagnosis.trusted_owners},
                  {"environment", std::move(environment)},
                  {"cpu", diagnosis.cpu},
                  {"findings", std::move(lines)}};
  // Paths need not be UTF-8, JSON has to be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace jitsoftmax::tools
