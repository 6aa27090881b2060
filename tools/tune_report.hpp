// What `autotune` says of one shape: lines for people, JSON for machines.
#pragma once

#include <jitsoftmax/tuning.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace jitsoftmax::tools {

// `all`: every candidate with its times, or why it cannot be chosen.
[[nodiscard]] std::string to_text(const TuneReport& report, bool all);
[[nodiscard]] nlohmann::ordered_json to_json(const TuneReport& report);

}  // namespace jitsoftmax::tools
