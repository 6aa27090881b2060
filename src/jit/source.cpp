#include "jit/source.hpp"

namespace jitsoftmax::jit {

Program program(const plan::Specialization& specialization, const Arch& arch) {
  std::string text = "#include \"";
  text.append(plan::template_file(specialization.family)).append("\"\nusing namespace jitsoftmax::kernels;\n");
  return {.text = std::move(text),
          .name = plan::name_expression(specialization),
          .arch = arch,
          // Nothing is contracted: the arithmetic is what the templates say. Unmarked functions are
          // device functions, so that the templates are plain C++.
          .options = {"--std=c++20", "--fmad=false", "--device-as-default-execution-space",
                      "--gpu-architecture=" + arch.name()}};
}

}  // namespace jitsoftmax::jit
