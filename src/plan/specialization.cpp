#include "plan/specialization.hpp"

#include <array>
#include <utility>

namespace jitsoftmax::plan {
namespace {

struct FamilyNames {
  Family family;
  std::string_view name;
  std::string_view file;
};
constexpr std::array<FamilyNames, 9> families{{
    {Family::safe, "safe", "softmax_safe.cuh"},
    {Family::looped, "looped", "softmax_looped.cuh"},
    {Family::registers, "registers", "softmax_registers.cuh"},
    {Family::staged, "staged", "softmax_staged.cuh"},
    {Family::split, "split", "softmax_split.cuh"},
    {Family::counted, "counted", "softmax_counted.cuh"},
    {Family::strided, "strided", "softmax_strided.cuh"},
    {Family::strided_registers, "strided_registers", "softmax_strided_registers.cuh"},
    {Family::strided_staged, "strided_staged", "softmax_strided_staged.cuh"},
}};

constexpr std::array<std::pair<DType, std::string_view>, 4> dtypes{{
    {DType::f16, "f16"},
    {DType::bf16, "bf16"},
    {DType::f32, "f32"},
    {DType::f64, "f64"},
}};

std::string_view device_type(DType type) noexcept {
  switch (type) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    default:
      return name_of(type);
  }
}

std::string_view device_type(Op op) noexcept { return op == Op::softmax ? "Softmax" : "LogSoftmax"; }

// Every field, in the order of its declaration: a designated initializer must follow it.
std::string spell(const kernels::Config& config) {
  std::string text = "Config{.threads=" + std::to_string(config.threads) + ",.rows=" + std::to_string(config.rows) +
                     (config.cluster != 1 ? ",.cluster=" + std::to_string(config.cluster) : "") +
                     ",.vector=" + std::to_string(config.vector) + ",.elements=" + std::to_string(config.elements);
  if (config.aligned) text += ",.aligned=true";
  if (config.peeled) text += ",.peeled=true";
  if (config.packed) text += ",.packed=true";
  if (config.blocked) text += ",.blocked=true";
  if (config.persistent) text += ",.persistent=true";
  if (config.low_latency) text += ",.low_latency=true";
  if (config.staggered) text += ",.staggered=true";
  if (config.pieces != 0) text += ",.pieces=" + std::to_string(config.pieces);
  if (config.resident != 0) text += ",.resident=" + std::to_string(config.resident);
  if (config.shared != 0) text += ",.shared=" + std::to_string(config.shared);
  return text + "}";
}

}  // namespace

std::string name_expression(const Specialization& specialization) {
  std::string text{name_of(specialization.family)};
  text += "<" + spell(specialization.config) + ",";
  text += specialization.cols == 0 || !may_know_columns(specialization.family)
              ? "Runtime"
              : "Static<" + std::to_string(specialization.cols) + ">";
  for (const std::string_view part :
       {device_type(specialization.in), device_type(specialization.out), device_type(specialization.op)}) {
    text.append(",").append(part);
  }
  return text + ">";
}

std::string_view name_of(Family family) noexcept {
  for (const FamilyNames& names : families) {
    if (names.family == family) return names.name;
  }
  return "?";
}

std::optional<Family> family_named(std::string_view name) noexcept {
  for (const FamilyNames& names : families) {
    if (names.name == name) return names.family;
  }
  return std::nullopt;
}

std::string_view template_file(Family family) noexcept {
  for (const FamilyNames& names : families) {
    if (names.family == family) return names.file;
  }
  return "";
}

std::string_view name_of(DType type) noexcept {
  for (const auto& [value, name] : dtypes) {
    if (value == type) return name;
  }
  return "?";
}

std::optional<DType> dtype_named(std::string_view name) noexcept {
  for (const auto& [value, known] : dtypes) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::string_view name_of(Op op) noexcept { return op == Op::softmax ? "softmax" : "log_softmax"; }

Problem problem_of(const Specialization& specialization) noexcept {
  Problem problem;
  problem.cols = specialization.cols;
  problem.in = specialization.in;
  problem.out = specialization.out;
  problem.op = specialization.op;
  problem.layout = is_strided(specialization.family) ? Layout::strided : Layout::contiguous;
  return problem;
}

std::string describe(const Problem& problem) {
  std::string text = std::to_string(problem.cols) + " ";
  text += name_of(problem.in);
  if (problem.out != problem.in) text.append("->").append(name_of(problem.out));
  if (problem.op != Op::softmax) text.append(" ").append(name_of(problem.op));
  if (problem.layout == Layout::strided) text += " strided";
  return text;
}

}  // namespace jitsoftmax::plan
