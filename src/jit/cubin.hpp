// Cubin: what the compiler made of one program, and what a cache entry keeps of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jitsoftmax::jit {

enum class PayloadKind : std::uint8_t {
  cubin = 1,  // machine code for exactly one architecture
  ptx = 2,    // where the compiler does not know the device: the driver compiles it
};

// As the assembler reports them; all 0 for PTX.
struct Resources {
  std::uint32_t registers = 0;     // a thread
  std::uint32_t stack_bytes = 0;   // local memory a thread: stack frame
  std::uint32_t spill_bytes = 0;   // stores and loads, a thread
  std::uint32_t shared_bytes = 0;  // static, a block
};

struct Cubin {
  PayloadKind kind = PayloadKind::cubin;
  std::vector<char> payload;
  std::string kernel;    // the lowered (mangled) name
  std::string compiler;  // the NVRTC that made it, "13.0"
  Resources resources;
};

}  // namespace jitsoftmax::jit
