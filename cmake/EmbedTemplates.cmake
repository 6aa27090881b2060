# cmake -DOUTPUT=F.cpp "-DFILES=a.cuh;b.cuh" -P EmbedTemplates.cmake
# Writes the definition of jitsoftmax::jit::templates(): every file as a string literal, by name.
list(SORT FILES COMPARE STRING)
set(rows "")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  # A literal is at most 64 KiB in the standard; concatenated pieces of 8 KiB keep to every compiler.
  string(LENGTH "${text}" length)
  set(literal "")
  set(start 0)
  while(start LESS length)
    string(SUBSTRING "${text}" ${start} 8192 piece)
    string(APPEND literal "R\"template(${piece})template\"\n")
    math(EXPR start "${start} + 8192")
  endwhile()
  string(APPEND rows "    {\"${name}\",\n${literal}},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from kernel_templates/.
#include \"jit/source.hpp\"

namespace jitsoftmax::jit {
namespace {
constexpr TemplateFile files[] = {
${rows}};
}  // namespace

std::span<const TemplateFile> templates() noexcept { return files; }

}  // namespace jitsoftmax::jit
")
