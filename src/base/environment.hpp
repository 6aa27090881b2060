// The environment, read as values.
#pragma once

#include <optional>
#include <string>

namespace jitsoftmax::base {

// Unset and empty are both nothing.
[[nodiscard]] std::optional<std::string> environment(const char* name);

}  // namespace jitsoftmax::base
