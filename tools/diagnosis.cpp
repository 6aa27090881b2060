// Implements diagnosis.hpp, with the rooms' own searches.
#include "diagnosis.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <jitsoftmax/error.hpp>
#include <string_view>
#include <utility>

#include "cache/store.hpp"
#include "cuda/device.hpp"
#include "cuda/driver.hpp"
#include "host/variants.hpp"
#include "jit/compiler.hpp"
#include "jit/source.hpp"
#include "jit/target.hpp"
#include "logger.hpp"
#include "options.hpp"

namespace jitsoftmax::tools {
namespace {

constexpr std::string_view known_settings[] = {
    "JITSOFTMAX_CACHE_DIR",     "JITSOFTMAX_CACHE_LAYERS", "JITSOFTMAX_CACHE_LIMIT", "JITSOFTMAX_DEVICE",
    "JITSOFTMAX_LOG",           "JITSOFTMAX_NVRTC",        "JITSOFTMAX_ON_MISS",     "JITSOFTMAX_PROGRAMMATIC_LAUNCH",
    "JITSOFTMAX_TRUSTED_OWNERS"};

// Why a value is not taken, where that can be said of it alone.
std::string complaint_about(const Setting& setting) {
  if (std::ranges::find(known_settings, setting.name) == std::end(known_settings)) return "nothing reads it";
  if (setting.name == "JITSOFTMAX_LOG" && !is_log_level(setting.value)) return "is no log level";
  try {
    if (setting.name == "JITSOFTMAX_DEVICE") (void)Device::parse(setting.value);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void take(Setting& setting, std::string complaint) {
  setting.complaint = std::move(complaint);
  ::unsetenv(setting.name.c_str());  // NOLINT(concurrency-mt-unsafe)
}

// What the library refuses: its message names the variable. True: one was taken.
bool take_refused(std::vector<Setting>& settings) {
  try {
    (void)Options::from_environment();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    for (Setting& setting : settings) {
      if (!setting.complaint.empty() || !message.starts_with(setting.name + " ")) continue;
      take(setting, error.what());
      return true;
    }
  }
  return false;
}

std::string kernel_module_version() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  std::getline(file, version);
  return version;
}

std::vector<Gpu> gpus() {
  std::vector<Gpu> found;
  for (int ordinal = 0; ordinal < cuda::device_count(); ++ordinal) {
    const CUdevice device = cuda::device_of(ordinal);
    found.push_back({ordinal, cuda::device_name(device), cuda::architecture(device), cuda::multiprocessors(device)});
  }
  return found;
}

jit::Program empty_kernel(const Arch& arch) {
  return {.text = "__global__ void nothing() {}\n",
          .name = "nothing",
          .arch = arch,
          .options = {"--gpu-architecture=" + arch.name()}};
}

}  // namespace

bool Diagnosis::can_cache() const noexcept {
  return std::ranges::any_of(cache, [](const ExaminedDirectory& directory) {
    return directory.access == Access::writable && directory.refused.empty() && directory.unwritable.empty();
  });
}

std::vector<Setting> take_settings() {
  std::vector<Setting> settings;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (!text.starts_with("JITSOFTMAX_") || equals == std::string_view::npos) continue;
    settings.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  std::ranges::sort(settings, {}, &Setting::name);
  for (Setting& setting : settings) {
    if (setting.value.empty()) continue;
    if (std::string complaint = complaint_about(setting); !complaint.empty()) take(setting, std::move(complaint));
  }
  while (take_refused(settings)) {
  }
  return settings;
}

DriverFacts examine_driver() {
  DriverFacts facts;
  facts.version = kernel_module_version();
  try {
    const cuda::Driver& driver = cuda::driver();
    facts.library = cuda::driver_path();
    cuda::check(driver.DriverGetVersion(&facts.cuda_version), "cuDriverGetVersion");
  } catch (const Error& error) {
    facts.missing = error.what();
    return facts;
  }
  try {
    facts.gpus = gpus();
    if (facts.gpus.empty()) facts.fault = "the driver finds none, or CUDA_VISIBLE_DEVICES hides them";
  } catch (const Error& error) {
    facts.fault = error.what();
  }
  return facts;
}

NvrtcFacts examine_nvrtc(const std::string& path, const std::optional<Arch>& device) {
  NvrtcFacts facts;
  try {
    jit::Compiler compiler(path, [&](LogLevel level, const std::string& message) {
      if (level == LogLevel::warning) facts.warning = message;
    });
    facts.version = compiler.version();
    facts.library = compiler.library();
    facts.builtins = compiler.builtins();
    const std::vector<Arch> known = compiler.architectures();
    constexpr Arch usual{9, 0};
    facts.trial_arch = device ? *device : jit::knows(known, usual) || known.empty() ? usual : known.back();
    try {
      const auto start = std::chrono::steady_clock::now();
      (void)compiler.compile_for_device(empty_kernel(facts.trial_arch));
      facts.trial_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    } catch (const Error& error) {
      facts.trial_fault = error.what();
    }
  } catch (const Error& error) {
    facts.missing = error.what();
  }
  return facts;
}

Diagnosis diagnose(const std::optional<std::string>& cache_dir) {
  Diagnosis found;
  found.settings = take_settings();
  Options options = Options::from_environment();
  if (cache_dir) options.cache_dir = cache_dir;

  found.driver = examine_driver();
  std::optional<Arch> device;
  if (!found.driver.gpus.empty()) device = found.driver.gpus.front().arch;
  found.nvrtc = examine_nvrtc(options.nvrtc, device);

  // The store makes the paths absolute, as the library uses them.
  const cache::Store store(store_options(options));
  found.trusted_owners = options.trusted_owners;
  for (const std::string& layer : store.options().layers)
    found.cache.push_back(examine_directory(layer, Access::layer, options.trusted_owners));
  if (const std::string& directory = store.options().directory; !directory.empty())
    found.cache.push_back(examine_directory(directory, Access::writable, options.trusted_owners));
  found.cpu = host::name_of(*host::usable_kernels().back());
  return found;
}

}  // namespace jitsoftmax::tools
