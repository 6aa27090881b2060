// Options by name, their values as text: how the environment and the C API set them.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace jitsoftmax {

// `value` is spelled as in the environment. `label` is what a message calls the option. Throws invalid_argument
// for a name that is none, and for a value that cannot be understood; `options` are as before then.
void set_option(Options& options, std::string_view name, const std::string& value, const std::string& label);

// What is between the separators, without what is empty.
[[nodiscard]] std::vector<std::string> split(const std::string& list, char separator);

}  // namespace jitsoftmax
