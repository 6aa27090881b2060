#include <charconv>
#include <jitsoftmax/engine.hpp>
#include <utility>

#include "api/option_text.hpp"
#include "base/environment.hpp"

namespace jitsoftmax {

Device Device::parse(const std::string& name) {
  if (name == "current") return current();
  if (name == "host") return host();
  const std::string prefix = "cuda:";
  int ordinal = 0;
  const char* const end = name.data() + name.size();
  if (name.compare(0, prefix.size(), prefix) == 0) {
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, ordinal);
    if (error == std::errc{} && rest == end && ordinal >= 0) return cuda(ordinal);
  }
  throw Error(ErrorCode::invalid_argument, "'" + name + "' is no device; write current, cuda:N or host");
}

Options Options::from_environment() {
  Options options;
  for (const auto& [variable, option] : {std::pair{"JITSOFTMAX_DEVICE", "device"},
                                         {"JITSOFTMAX_ON_MISS", "on_miss"},
                                         {"JITSOFTMAX_CACHE_DIR", "cache_dir"},
                                         {"JITSOFTMAX_CACHE_LAYERS", "cache_layers"},
                                         {"JITSOFTMAX_CACHE_LIMIT", "cache_limit"},
                                         {"JITSOFTMAX_TRUSTED_OWNERS", "trusted_owners"},
                                         {"JITSOFTMAX_PROGRAMMATIC_LAUNCH", "programmatic_launch"},
                                         {"JITSOFTMAX_NVRTC", "nvrtc"}}) {
    if (const auto value = base::environment(variable)) set_option(options, option, *value, variable);
  }
  return options;
}

}  // namespace jitsoftmax
