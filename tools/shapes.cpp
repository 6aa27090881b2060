#include "shapes.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "exit_code.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax::tools {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Failure(exit_code::usage, message); }

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// "f16" or "f16->f32"
std::optional<std::pair<DType, DType>> dtypes_named(const std::string& word) {
  const std::size_t arrow = word.find("->");
  const std::optional<DType> in = plan::dtype_named(word.substr(0, arrow));
  const std::optional<DType> out = arrow == std::string::npos ? in : plan::dtype_named(word.substr(arrow + 2));
  if (!in || !out) return std::nullopt;
  if (*in != *out && !(is_half(*in) && *out == DType::f32) && !(*in == DType::f32 && is_half(*out))) {
    return std::nullopt;
  }
  return std::pair(*in, *out);
}

// A whole number of at least 1.
std::optional<std::int64_t> count_in(const std::string& word) {
  std::int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end || value < 1) return std::nullopt;
  return value;
}

}  // namespace

std::int64_t rows_of(const ShapeLine& line) noexcept {
  constexpr std::int64_t elements = std::int64_t{1} << 26;
  return line.rows.value_or(std::max<std::int64_t>(1, elements / std::max<std::int64_t>(line.problem.cols, 1)));
}

ShapeLine parse_shape(const std::vector<std::string>& words) {
  const std::string usage = "a line is 'N dtype [rows] [log_softmax] [strided]'";
  ShapeLine line;
  const std::optional<std::int64_t> cols = count_in(words[0]);
  if (!cols) fail(fmt::format("'{}' is not a row length from 1 to 2^63 - 1: {}", words[0], usage));
  line.problem.cols = *cols;

  if (words.size() < 2) fail(fmt::format("the element type is missing: {}", usage));
  const auto dtypes = dtypes_named(words[1]);
  if (!dtypes) {
    fail(fmt::format("'{}' is not f16, bf16, f32, f64, or f16 or bf16 to or from f32 (as 'f16->f32')", words[1]));
  }
  std::tie(line.problem.in, line.problem.out) = *dtypes;

  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "log_softmax") {
      line.problem.op = Op::log_softmax;
    } else if (word == "strided") {
      line.problem.layout = Layout::strided;
    } else if (const auto rows = count_in(word); rows && i == 2) {
      line.rows = rows;
    } else {
      fail(fmt::format("'{}' is not understood here: {}", word, usage));
    }
  }
  return line;
}

std::vector<ShapeLine> parse_shapes(std::istream& text, const std::string& name) {
  std::vector<ShapeLine> lines;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    std::istringstream content(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; content >> word;) words.push_back(word);
    if (words.empty()) continue;
    try {
      lines.push_back(parse_shape(words));
    } catch (const Failure& failure) {
      fail(fmt::format("{}:{}: {}", name, number, failure.what()));
    }
  }
  if (text.bad()) fail(fmt::format("'{}' cannot be read", name));
  if (lines.empty()) fail(fmt::format("'{}' has no shape: add lines such as '4096 f32'", name));
  return lines;
}

std::vector<ShapeLine> read_shapes(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    fail(fmt::format("'{}' cannot be opened: {}", path, std::generic_category().message(errno)));
  }
  return parse_shapes(file, path);
}

std::vector<Problem> problems_of(const std::vector<ShapeLine>& lines) {
  std::vector<Problem> problems;
  for (const ShapeLine& line : lines) {
    if (std::find(problems.begin(), problems.end(), line.problem) == problems.end()) problems.push_back(line.problem);
  }
  return problems;
}

}  // namespace jitsoftmax::tools
