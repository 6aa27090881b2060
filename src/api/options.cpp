#include <charconv>
#include <jitsoftmax/engine.hpp>
#include <sstream>

#include "base/environment.hpp"
#include "base/size.hpp"

namespace jitsoftmax {
namespace {

OnMiss parse_on_miss(const std::string& name) {
  if (name == "compile") return OnMiss::compile;
  if (name == "background") return OnMiss::background;
  if (name == "fail") return OnMiss::fail;
  throw Error(ErrorCode::invalid_argument, "JITSOFTMAX_ON_MISS is '" + name + "'; known: compile, background, fail");
}

std::optional<std::int64_t> parse_limit(const std::string& text) {
  if (text == "none") return std::nullopt;
  if (const auto bytes = base::parse_size(text)) return bytes;
  throw Error(ErrorCode::invalid_argument,
              "JITSOFTMAX_CACHE_LIMIT is '" + text + "'; write bytes, as 500000 or 64MB, or none");
}

std::vector<std::string> split_paths(const std::string& list) {
  std::vector<std::string> paths;
  std::istringstream stream(list);
  for (std::string path; std::getline(stream, path, ':');) {
    if (!path.empty()) paths.push_back(path);
  }
  return paths;
}

}  // namespace

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
  using base::environment;
  Options options;
  if (const auto value = environment("JITSOFTMAX_DEVICE")) options.device = Device::parse(*value);
  if (const auto value = environment("JITSOFTMAX_ON_MISS")) options.on_miss = parse_on_miss(*value);
  if (const auto value = environment("JITSOFTMAX_CACHE_LAYERS")) options.cache_layers = split_paths(*value);
  if (const auto value = environment("JITSOFTMAX_CACHE_LIMIT")) options.cache_limit = parse_limit(*value);
  if (const auto value = environment("JITSOFTMAX_NVRTC")) options.nvrtc = *value;
  options.cache_dir = environment("JITSOFTMAX_CACHE_DIR");
  return options;
}

}  // namespace jitsoftmax
