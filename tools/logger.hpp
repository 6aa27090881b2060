// The program's log, on stderr. Results go to stdout and never through here.
#pragma once

#include <spdlog/logger.h>

#include <jitsoftmax/engine.hpp>
#include <string_view>

namespace jitsoftmax::tools {

// Level: JITSOFTMAX_LOG (debug, info, warning, error, off), else warning. From any thread.
[[nodiscard]] spdlog::logger& logger();

[[nodiscard]] bool is_log_level(std::string_view name) noexcept;

// Shows more, unless JITSOFTMAX_LOG says otherwise.
void log_details();

// The library's callback, connected to logger().
[[nodiscard]] Log library_log();

}  // namespace jitsoftmax::tools
