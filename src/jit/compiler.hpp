// NVRTC, opened at run time on first use.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <memory>
#include <string>
#include <vector>

#include "jit/cubin.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::jit {

// Threads: compile() may be called from several threads at once and compiles in parallel.
class Compiler {
 public:
  // `path`: libnvrtc to open; empty: one that the process already has, then the usual places.
  // Opens nothing yet.
  explicit Compiler(std::string path, Log log);
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  // Throws no_compiler (with every path tried and what to install), unknown_arch (with what this
  // NVRTC knows) or compile_failed (with NVRTC's log). A failure is not remembered.
  [[nodiscard]] Cubin compile(const Program& program);

  // "13.0" and the architectures, {7,5} first. Throw no_compiler.
  [[nodiscard]] std::string version();
  [[nodiscard]] std::vector<Arch> architectures();
  [[nodiscard]] std::string library();  // the path that was opened

 private:
  struct Library;
  Library& library_or_throw();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jitsoftmax::jit
