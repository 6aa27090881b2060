#include "logger.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/environment.hpp"

namespace jitsoftmax::tools {
namespace {

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 5> levels{{
    {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},
    {"warning", spdlog::level::warn},
    {"error", spdlog::level::err},
    {"off", spdlog::level::off},
}};

std::optional<spdlog::level::level_enum> level_named(std::string_view name) noexcept {
  for (const auto& [candidate, level] : levels) {
    if (candidate == name) return level;
  }
  return std::nullopt;
}

spdlog::logger make_logger() {
  spdlog::logger made("jitsoftmax", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  made.set_pattern("jitsoftmax: %^%l%$: %v");
  made.set_level(spdlog::level::warn);
  if (const std::optional<std::string> name = base::environment("JITSOFTMAX_LOG")) {
    if (const auto level = level_named(*name)) {
      made.set_level(*level);
    } else {
      made.warn("JITSOFTMAX_LOG is '{}': use debug, info, warning, error or off", *name);
    }
  }
  return made;
}

}  // namespace

spdlog::logger& logger() {
  static spdlog::logger instance = make_logger();
  return instance;
}

bool is_log_level(std::string_view name) noexcept { return level_named(name).has_value(); }

void log_details() {
  if (!base::environment("JITSOFTMAX_LOG")) logger().set_level(spdlog::level::debug);
}

Log library_log() {
  return [](LogLevel level, const std::string& message) {
    switch (level) {
      case LogLevel::debug:
        return logger().debug("{}", message);
      case LogLevel::info:
        return logger().info("{}", message);
      case LogLevel::warning:
        return logger().warn("{}", message);
      case LogLevel::error:
        return logger().error("{}", message);
    }
  };
}

}  // namespace jitsoftmax::tools
