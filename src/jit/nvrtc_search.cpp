// Finds an NVRTC on this machine and makes sure that it works.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <jitsoftmax/error.hpp>
#include <string_view>
#include <system_error>

#include "jit/nvrtc.hpp"

namespace jitsoftmax::jit {
namespace {

namespace fs = std::filesystem;

using VersionNumbers = std::vector<int>;

// "13.0" → {13, 0}, "" → {}; nothing for anything else, such as "alt.so.13".
std::optional<VersionNumbers> parse_version(std::string_view text) {
  VersionNumbers numbers;
  while (!text.empty()) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != '.' || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return numbers;
}

// The entries of a folder that are called prefix + version, newest first.
std::vector<std::string> versioned(const fs::path& folder, std::string_view prefix) {
  std::vector<std::pair<VersionNumbers, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(prefix)) continue;
    std::string_view rest = std::string_view(name).substr(prefix.size());
    if (rest.starts_with('.')) rest.remove_prefix(1);
    if (const auto version = parse_version(rest)) found.emplace_back(*version, entry->path());
  }
  std::ranges::sort(found, std::ranges::greater{});
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (auto& [version, path] : found) paths.push_back(std::move(path));
  return paths;
}

template <typename Function>
void resolve(const base::SharedLibrary& library, Function& function, const char* name, std::string& missing) {
  if (!library.resolve(function, name)) missing = name;
}

// Empty, or the name of a function that is not there.
std::string resolve_all(Nvrtc& n) {
  std::string missing;
  const auto get = [&](auto& function, const char* name) { resolve(n.library, function, name, missing); };
  get(n.Version, "nvrtcVersion");
  get(n.GetErrorString, "nvrtcGetErrorString");
  get(n.GetNumSupportedArchs, "nvrtcGetNumSupportedArchs");
  get(n.GetSupportedArchs, "nvrtcGetSupportedArchs");
  get(n.CreateProgram, "nvrtcCreateProgram");
  get(n.DestroyProgram, "nvrtcDestroyProgram");
  get(n.AddNameExpression, "nvrtcAddNameExpression");
  get(n.CompileProgram, "nvrtcCompileProgram");
  get(n.GetLoweredName, "nvrtcGetLoweredName");
  get(n.GetCUBINSize, "nvrtcGetCUBINSize");
  get(n.GetCUBIN, "nvrtcGetCUBIN");
  get(n.GetPTXSize, "nvrtcGetPTXSize");
  get(n.GetPTX, "nvrtcGetPTX");
  get(n.GetProgramLogSize, "nvrtcGetProgramLogSize");
  get(n.GetProgramLog, "nvrtcGetProgramLog");
  return missing;
}

// NVRTC opens its builtins by name, and has no search path of its own: with the builtins beside it
// but off the loader's path every compile fails. Once they are in the process, the name is enough.
void open_builtins(Nvrtc& nvrtc) {
  const std::string name = "libnvrtc-builtins.so." + nvrtc.version();
  std::error_code error;
  std::vector<fs::path> folders{fs::path(nvrtc.path).parent_path()};
  // The library may be a link into the folder that holds both.
  const fs::path real = fs::canonical(nvrtc.path, error).parent_path();
  if (!error && real != folders.front()) folders.push_back(real);
  for (const fs::path& folder : folders) {
    const fs::path file = fs::absolute(folder, error) / name;
    std::string reason;
    nvrtc.builtins = base::SharedLibrary::open(file, reason);
    nvrtc.builtins_tried += file.string() + ", ";
    if (nvrtc.builtins) break;
  }
  nvrtc.builtins_tried += name + " on the loader's path";
}

// Compiles nothing, with the options that not every version has, to see which it takes (an unknown
// one fails at once). Empty, or why this NVRTC cannot compile at all.
std::string probe(Nvrtc& nvrtc) {
  // Some versions keep compiled kernels in a directory of their own otherwise.
  const std::string no_cache = "--no-cache";
  // The assembler reports registers, stack and shared memory.
  const std::string report = "--ptxas-options=-v";
  nvrtcResult result = NVRTC_SUCCESS;
  std::string log;
  for (const std::vector<std::string>& options :
       std::initializer_list<std::vector<std::string>>{{no_cache, report}, {report}, {no_cache}, {}}) {
    NvrtcProgram program(nvrtc, "", {});
    result = program.compile(options);
    log = program.log();
    if (result == NVRTC_ERROR_INVALID_OPTION) continue;
    nvrtc.extra_options = options;
    break;
  }
  if (result == NVRTC_SUCCESS) return {};
  if (log.empty()) log = nvrtc.GetErrorString(result);
  if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) log += "\n    Tried " + nvrtc.builtins_tried + ".";
  return log;
}

// Null, with one more line in `tried`, if the library cannot be used.
std::unique_ptr<const Nvrtc> usable(base::SharedLibrary library, const std::string& name, std::string& tried) {
  const auto refuse = [&](const std::string& why) {
    tried += "\n  " + name + ": " + why;
    return nullptr;
  };
  auto nvrtc = std::make_unique<Nvrtc>();
  nvrtc->library = std::move(library);
  nvrtc->path = nvrtc->library.path();
  if (nvrtc->path.empty()) nvrtc->path = name;
  if (const std::string missing = resolve_all(*nvrtc); !missing.empty())
    return refuse("has no " + missing + "; an NVRTC of CUDA 12 or newer is needed");
  if (nvrtc->Version(&nvrtc->major, &nvrtc->minor) != NVRTC_SUCCESS) return refuse("nvrtcVersion fails");
  if (nvrtc->major < 12) return refuse("is NVRTC " + nvrtc->version() + "; CUDA 12 or newer is needed");

  int count = 0;
  std::vector<int> numbers;
  nvrtcResult result = nvrtc->GetNumSupportedArchs(&count);
  if (result == NVRTC_SUCCESS && count > 0) {
    numbers.resize(static_cast<std::size_t>(count));
    result = nvrtc->GetSupportedArchs(numbers.data());
  }
  if (result != NVRTC_SUCCESS) return refuse("nvrtcGetSupportedArchs fails");
  std::ranges::sort(numbers);
  for (const int number : numbers) nvrtc->archs.push_back({number / 10, number % 10});

  open_builtins(*nvrtc);
  if (const std::string why = probe(*nvrtc); !why.empty()) return refuse(why);
  return nvrtc;
}

std::unique_ptr<const Nvrtc> open_one(const std::string& name, std::string& tried) {
  std::string reason;
  base::SharedLibrary library = base::SharedLibrary::open(name, reason);
  if (!library) {
    tried += "\n  " + reason;
    return nullptr;
  }
  return usable(std::move(library), name, tried);
}

std::unique_ptr<const Nvrtc> open_in(const std::string& folder, std::string& tried) {
  const std::vector<std::string> files = nvrtc_files(folder);
  if (files.empty()) tried += "\n  " + folder + ": no libnvrtc.so.* there";
  for (const std::string& file : files)
    if (auto nvrtc = open_one(file, tried)) return nvrtc;
  return nullptr;
}

std::vector<std::string> folders(const NvrtcSearch& search) {
  std::vector<std::string> all;
  for (const std::string& toolkit : search.toolkits) all.push_back((fs::path(toolkit) / "lib64").string());
  all.emplace_back("/usr/local/cuda/lib64");
  for (const std::string& toolkit : versioned("/usr/local", "cuda-"))
    all.push_back((fs::path(toolkit) / "lib64").string());
#if defined(__aarch64__)
  all.emplace_back("/usr/lib/aarch64-linux-gnu");
#else
  all.emplace_back("/usr/lib/x86_64-linux-gnu");
#endif
  return all;
}

constexpr const char* names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

constexpr const char* advice =
    "\nInstall NVRTC of CUDA 12 or newer (the distribution's or NVIDIA's package cuda-nvrtc-13-0, or the wheel "
    "nvidia-cuda-nvrtc), with libnvrtc-builtins.so.* in the same folder, and set Options::nvrtc or JITSOFTMAX_NVRTC to "
    "the library or its folder if it is in none of the usual places. A cache directory that was warmed elsewhere makes "
    "it unnecessary.";

}  // namespace

std::vector<std::string> nvrtc_files(const std::string& folder) { return versioned(folder, "libnvrtc.so"); }

std::unique_ptr<const Nvrtc> open_nvrtc(const NvrtcSearch& search) {
  std::string tried;
  if (!search.path.empty()) {
    std::error_code error;
    if (auto nvrtc = fs::is_directory(search.path, error) ? open_in(search.path, tried) : open_one(search.path, tried))
      return nvrtc;
    throw Error(ErrorCode::no_compiler, "NVRTC was to be taken from " + search.path +
                                            " and from nowhere else, which did not work:" + tried + advice);
  }
  for (const char* name : names)
    if (base::SharedLibrary library = base::SharedLibrary::already_loaded(name))
      if (auto nvrtc = usable(std::move(library), std::string(name) + " of this process", tried)) return nvrtc;
  for (const char* name : names)
    if (auto nvrtc = open_one(name, tried)) return nvrtc;
  for (const std::string& folder : folders(search))
    if (auto nvrtc = open_in(folder, tried)) return nvrtc;
  throw Error(ErrorCode::no_compiler, "a kernel has to be compiled and no NVRTC could be used:" + tried + advice);
}

}  // namespace jitsoftmax::jit
