// What `explain` says: lines for people, JSON for machines.
#pragma once

#include <string>

#include "explanation.hpp"

namespace jitsoftmax::tools {

[[nodiscard]] std::string to_text(const Explanation& explanation);
[[nodiscard]] std::string to_json(const Explanation& explanation);

}  // namespace jitsoftmax::tools
