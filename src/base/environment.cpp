#include "base/environment.hpp"

#include <cstdlib>

namespace jitsoftmax::base {

std::optional<std::string> environment(const char* name) {
  const char* value =
      std::getenv(name);  // NOLINT(concurrency-mt-unsafe): the host program's contract, as for any getenv
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace jitsoftmax::base
