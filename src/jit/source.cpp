#include "jit/source.hpp"

#include <utility>

namespace jitsoftmax::jit {

Program program(const plan::Specialization& specialization, const Arch& arch) {
  return program(plan::template_file(specialization.family), plan::name_expression(specialization), arch);
}

Program program(std::string_view template_file, std::string name_expression, const Arch& arch) {
  std::string text = "#include \"";
  text.append(template_file).append("\"\nusing namespace jitsoftmax::kernels;\n");
  return {.text = std::move(text),
          .name = std::move(name_expression),
          .arch = arch,
          // Nothing is contracted: the arithmetic is what the templates say. Unmarked functions are
          // device functions, so that the templates are plain C++.
          .options = {"--std=c++20", "--fmad=false", "--device-as-default-execution-space",
                      "--gpu-architecture=" + arch.name()}};
}

}  // namespace jitsoftmax::jit
