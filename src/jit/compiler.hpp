// NVRTC, opened at run time on first use.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/cubin.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::jit {

// Threads: compile() may be called from several threads at once and compiles in parallel.
class Compiler {
 public:
  // `path`: libnvrtc to open, or a folder that holds it, and no other; empty: one that the process
  // already has, then the loader's path, CUDA_PATH and CUDA_HOME (read now), /usr/local/cuda*.
  // Opens nothing yet.
  explicit Compiler(std::string path, Log log);
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  // Throws no_compiler (with every path tried and what to install), unknown_arch (with what this
  // NVRTC knows) or compile_failed (with NVRTC's log). A failure is not remembered.
  [[nodiscard]] Cubin compile(const Program& program);

  // compile() for a GPU at hand, where `program.arch` is its architecture: if it is newer than this
  // NVRTC, the result is for the nearest target that runs on it (see target.hpp), with one warning
  // to the log per Compiler. Throws as compile() does; unknown_arch for a GPU that is too old.
  [[nodiscard]] Cubin compile_for_device(const Program& program);

  // compile_for_device() of several programs for one GPU as a single one, which takes less time than each by
  // itself. Every result has the same code, and a name and resources of its own. One program that is refused
  // is an error of all.
  [[nodiscard]] std::vector<Cubin> compile_together(std::span<const Program> programs);

  // The PTX of a program, for people to read. Throws as compile() does.
  [[nodiscard]] std::string ptx(const Program& program);

  // "13.0" and the architectures, {7,5} first. Throw no_compiler.
  [[nodiscard]] std::string version();
  [[nodiscard]] std::vector<Arch> architectures();
  [[nodiscard]] std::string library();   // the path that was opened
  [[nodiscard]] std::string builtins();  // of NVRTC's builtins library; empty: left to the loader

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jitsoftmax::jit
