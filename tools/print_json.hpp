// How the program prints JSON.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace jitsoftmax::tools {

using Json = nlohmann::ordered_json;

// Paths may hold any bytes: what is no UTF-8 is replaced.
inline void print(const Json& json) {
  std::fputs((json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n').c_str(), stdout);
}

}  // namespace jitsoftmax::tools
