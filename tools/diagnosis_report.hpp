// A diagnosis for people and for machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis.hpp"

namespace jitsoftmax::tools {

enum class Health : std::uint8_t { ok, warn, missing };

struct Finding {
  Health health;
  std::string text;  // may have several lines
};

[[nodiscard]] std::vector<Finding> findings(const Diagnosis& diagnosis);

// "ok", "warn" or "missing", then the text; what is below its first line is indented. The last line sums up.
[[nodiscard]] std::string to_text(const Diagnosis& diagnosis);

// One object, with the findings and the facts behind them.
[[nodiscard]] std::string to_json(const Diagnosis& diagnosis);

// 0 where kernels can be compiled or launched, else no_compiler: what needs no hardware to be had.
[[nodiscard]] int exit_code_of(const Diagnosis& diagnosis) noexcept;

}  // namespace jitsoftmax::tools
