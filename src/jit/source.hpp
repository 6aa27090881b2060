// From a specialization to the program that NVRTC compiles. Pure: needs neither NVRTC nor a driver.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/specialization.hpp"

namespace jitsoftmax::jit {

// One file of kernel_templates/, embedded when the library is built.
struct TemplateFile {
  std::string_view name;  // "device.cuh"
  std::string_view text;
};

// Sorted by name. Defined in a generated file.
[[nodiscard]] std::span<const TemplateFile> templates() noexcept;

struct Program {
  std::string text;  // includes the family's file and nothing else
  std::string name;  // the name expression
  Arch arch;
  std::vector<std::string> options;  // every option that bears on the code, in order
};

[[nodiscard]] Program program(const plan::Specialization& specialization, const Arch& arch);

// The program of any kernel of kernel_templates/.
[[nodiscard]] Program program(std::string_view template_file, std::string name_expression, const Arch& arch);

}  // namespace jitsoftmax::jit
