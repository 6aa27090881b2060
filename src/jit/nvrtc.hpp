// One NVRTC library that is open and works, and one program that is compiled with it.
#pragma once

#include <nvrtc.h>

#include <jitsoftmax/engine.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/shared_library.hpp"

namespace jitsoftmax::jit {

// The entry points have had these signatures in all of NVRTC 12 and 13; only their types are taken
// from nvrtc.h, nothing is linked.
struct Nvrtc {
  decltype(&nvrtcVersion) Version = nullptr;
  decltype(&nvrtcGetErrorString) GetErrorString = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) GetNumSupportedArchs = nullptr;
  decltype(&nvrtcGetSupportedArchs) GetSupportedArchs = nullptr;
  decltype(&nvrtcCreateProgram) CreateProgram = nullptr;
  decltype(&nvrtcDestroyProgram) DestroyProgram = nullptr;
  decltype(&nvrtcAddNameExpression) AddNameExpression = nullptr;
  decltype(&nvrtcCompileProgram) CompileProgram = nullptr;
  decltype(&nvrtcGetLoweredName) GetLoweredName = nullptr;
  decltype(&nvrtcGetCUBINSize) GetCUBINSize = nullptr;
  decltype(&nvrtcGetCUBIN) GetCUBIN = nullptr;
  decltype(&nvrtcGetPTXSize) GetPTXSize = nullptr;
  decltype(&nvrtcGetPTX) GetPTX = nullptr;
  decltype(&nvrtcGetProgramLogSize) GetProgramLogSize = nullptr;
  decltype(&nvrtcGetProgramLog) GetProgramLog = nullptr;

  base::SharedLibrary library;
  base::SharedLibrary builtins;  // held so that NVRTC finds it by name; empty: left to the loader
  std::string path;              // of `library`
  std::string builtins_tried;    // where the builtins were looked for, for messages
  int major = 0;
  int minor = 0;
  std::vector<Arch> archs;                 // oldest first, without variants
  std::vector<std::string> extra_options;  // those that this version has and that leave the code as it is

  [[nodiscard]] std::string version() const { return std::to_string(major) + "." + std::to_string(minor); }

  // Throws out_of_memory, no_compiler (for the builtins) or compile_failed.
  void check(nvrtcResult result, const char* call) const;
};

// Where an NVRTC is looked for.
struct NvrtcSearch {
  std::string path;                   // of the library or its folder: this one or none
  std::vector<std::string> toolkits;  // else, after the usual names: folders of CUDA toolkits that come first
};

// Opens the first NVRTC that can compile. Throws no_compiler with everything that was tried and what
// to do.
[[nodiscard]] std::unique_ptr<const Nvrtc> open_nvrtc(const NvrtcSearch& search);

// The files of a folder that are an NVRTC, newest first: "libnvrtc.so.13", "libnvrtc.so", but not
// the "alt" builds or the builtins. Empty if the folder cannot be read.
[[nodiscard]] std::vector<std::string> nvrtc_files(const std::string& folder);

// A header given in memory.
struct Header {
  std::string name;
  std::string text;
};

// Owns an nvrtcProgram. For one thread; several may compile at once with one Nvrtc, which outlives them.
class NvrtcProgram {
 public:
  NvrtcProgram(const Nvrtc& nvrtc, const std::string& text, std::span<const Header> headers);
  ~NvrtcProgram();
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  void add_name(const std::string& expression);
  [[nodiscard]] nvrtcResult compile(std::span<const std::string> options);
  [[nodiscard]] std::string log() const;
  [[nodiscard]] std::string lowered_name(const std::string& expression) const;
  [[nodiscard]] std::vector<char> cubin() const;
  [[nodiscard]] std::vector<char> ptx() const;  // with its terminating zero

 private:
  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace jitsoftmax::jit
