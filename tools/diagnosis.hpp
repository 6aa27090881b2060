// Diagnosis: what the library finds on this machine, as values.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cache/walk.hpp"
#include "tune/records.hpp"

namespace jitsoftmax::tools {

// One variable that is set. `complaint`: as a clause; empty: it is understood.
struct Setting {
  std::string name;
  std::string value;
  std::string complaint = {};
};

struct Gpu {
  int ordinal = 0;
  std::string name;
  Arch arch;
  int multiprocessors = 0;
};

struct DriverFacts {
  std::string missing = {};  // why there is none and what to do; empty: it is there
  std::string library = {};
  int cuda_version = 0;        // 13000 is CUDA 13.0
  std::string version = {};    // of the kernel module, "580.159.04"; empty: not known
  std::string fault = {};      // why the GPUs cannot be told
  std::vector<Gpu> gpus = {};  // by ordinal
};

struct NvrtcFacts {
  std::string missing = {};  // as above
  std::string library = {};
  std::string version = {};
  std::string builtins = {};                 // empty: left to the loader
  Arch trial_arch = {};                      // what an empty kernel was compiled for
  std::string warning = {};                  // of the trial
  std::string trial_fault = {};              // why that failed
  std::optional<double> trial_seconds = {};  // where it did not
  [[nodiscard]] bool works() const noexcept { return trial_seconds.has_value(); }
};

enum class Access : std::uint8_t { layer, writable };

struct ExaminedDirectory {
  std::string path;
  Access access = Access::layer;
  bool exists = false;
  std::string trusted = {};               // why it is, as a clause; of one that exists
  std::string refused = {};               // why it is not used, as a clause; empty: it is
  std::string unwritable = {};            // why nothing can be written; of the writable one
  std::uint64_t entries = 0;              // files that are named as entries, not read
  std::uint64_t bytes = 0;                // of these
  std::uint64_t distrusted = 0;           // of the entries
  std::string first_distrust = {};        // path and why
  std::vector<cache::Fault> faults = {};  // folders in it that are refused or cannot be listed
  std::vector<tune::RecordFile> records = {};
};

struct Diagnosis {
  std::vector<Setting> settings;  // JITSOFTMAX_*, by name
  DriverFacts driver;
  NvrtcFacts nvrtc;
  std::vector<ExaminedDirectory> cache;  // in the order of look-up
  cache::Owners trusted_owners;          // beside this user and root
  std::string cpu;                       // instruction set of the loops

  [[nodiscard]] bool can_compile() const noexcept { return nvrtc.works(); }
  [[nodiscard]] bool can_launch() const noexcept { return !driver.gpus.empty(); }
  [[nodiscard]] bool can_cache() const noexcept;
};

// Each finds out about one thing and throws for nothing that is missing, but std::bad_alloc.

// What it complains of is taken out of this process's environment, so that the rest can be used; not
// while other threads read it.
[[nodiscard]] std::vector<Setting> take_settings();
[[nodiscard]] DriverFacts examine_driver();
// The trial is for `device`, else sm_90, else the newest that this NVRTC knows.
[[nodiscard]] NvrtcFacts examine_nvrtc(const std::string& path, const std::optional<Arch>& device);
// Creates nothing; writes one temporary file into a writable directory that is there, and removes it.
[[nodiscard]] ExaminedDirectory examine_directory(const std::string& path, Access access,
                                                  const cache::Owners& trusted = {});

// All of it. `cache_dir`: as Options::cache_dir, over the environment's.
[[nodiscard]] Diagnosis diagnose(const std::optional<std::string>& cache_dir);

}  // namespace jitsoftmax::tools
