// Users of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace jitsoftmax::base {

// Of a name that the system knows, or of the number itself, whether anybody has it or not.
[[nodiscard]] std::optional<std::uint32_t> user_id(const std::string& name_or_id);

}  // namespace jitsoftmax::base
