#include "bench_cells.hpp"

#include <spdlog/fmt/fmt.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>

#include "exit_code.hpp"

namespace jitsoftmax::tools {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& source, const std::string& what) {
  throw Failure(exit_code::usage, fmt::format("'{}' is no result of jitsoftmax bench --json: {}", source, what));
}

// The field of an object, of the kind that it has to be; `where` names the object.
const json& field(const json& object, const char* name, bool (json::*is)() const noexcept, const char* kind,
                  const std::string& source, std::string_view where) {
  if (!object.is_object()) refuse(source, fmt::format("{} is no object", where));
  const auto found = object.find(name);
  if (found == object.end()) refuse(source, fmt::format("{} has no \"{}\"", where, name));
  if (!((*found).*is)()) refuse(source, fmt::format("\"{}\" of {} is no {}", name, where, kind));
  return *found;
}

std::string text_of(const json& object, const char* name, const std::string& source, const std::string& where) {
  return field(object, name, &json::is_string, "text", source, where).get<std::string>();
}

BenchCell cell_of(const json& kernel, const std::string& name, const std::string& source) {
  BenchCell cell{.name = name, .share = {}, .error = {}};
  if (kernel.contains("error")) {
    cell.error = text_of(kernel, "error", source, name);
    return cell;
  }
  const double share = field(kernel, "share_of_copy", &json::is_number, "number", source, name).get<double>();
  if (!std::isfinite(share) || share <= 0) {
    refuse(source, fmt::format("\"share_of_copy\" of {} is {}, which is no share", name, share));
  }
  cell.share = share;
  return cell;
}

}  // namespace

BenchCells parse_bench(const std::string& text, const std::string& source) {
  json document;
  try {
    document = json::parse(text);
  } catch (const json::parse_error& error) {
    refuse(source, fmt::format("it is damaged at byte {}, or no JSON", error.byte));
  }
  BenchCells result{.source = source, .device = text_of(document, "device", source, "it"), .cells = {}};
  std::set<std::string> names;
  for (const json& shape : field(document, "cases", &json::is_array, "array", source, "it")) {
    const std::string problem = text_of(shape, "problem", source, "a case");
    const std::string name = fmt::format(
        "{}x{}", field(shape, "rows", &json::is_number_unsigned, "count", source, problem).get<std::uint64_t>(),
        problem);
    const json& kernels = field(shape, "kernels", &json::is_array, "array", source, name);
    std::multiset<std::string> called;
    for (const json& kernel : kernels) called.insert(text_of(kernel, "name", source, "a kernel of " + name));
    for (const json& kernel : kernels) {
      const std::string short_name = text_of(kernel, "name", source, name);
      std::string full = fmt::format("{} {}", name, short_name);
      if (called.count(short_name) > 1) full += ' ' + text_of(kernel, "kernel", source, full);
      if (!names.insert(full).second) refuse(source, full + " is there twice");
      result.cells.push_back(cell_of(kernel, full, source));
    }
  }
  if (result.cells.empty()) refuse(source, "it has no measurement");
  return result;
}

BenchCells read_bench(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Failure(exit_code::usage,
                  fmt::format("'{}' cannot be opened: {}", path, std::generic_category().message(errno)));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw Failure(exit_code::usage, fmt::format("'{}' cannot be read", path));
  return parse_bench(text, path);
}

}  // namespace jitsoftmax::tools
