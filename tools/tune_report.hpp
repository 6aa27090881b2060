// What `autotune` says of one shape: lines for people, JSON for machines.
#pragma once

#include <jitsoftmax/tuning.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernel_facts.hpp"

namespace jitsoftmax::tools {

// `all`: every candidate with its times, or why it cannot be chosen.
[[nodiscard]] std::string to_text(const TuneReport& report, bool all);
// `facts`: what kernels take, as far as it is known.
[[nodiscard]] nlohmann::ordered_json to_json(const TuneReport& report, const FactsByKernel& facts = {});

}  // namespace jitsoftmax::tools
