#include "shapes.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iostream>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "exit_code.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax::tools {
namespace {

constexpr const char* usage = "a line is 'N dtype [rows] [log_softmax] [strided]'";
constexpr std::size_t max_file_bytes = std::size_t{16} << 20;

struct Word {
  std::string_view text;
  std::size_t column = 1;  // of its first byte, from 1
};

// What is wrong, and where in its line.
struct Mistake {
  std::size_t column;
  std::string message;
};

[[noreturn]] void fail(const std::string& message) { throw Failure(exit_code::usage, message); }

// Fit for a message, whatever the word is.
std::string shown(std::string_view word) {
  constexpr std::size_t most = 60;
  std::string text(word.substr(0, most));
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return "'" + text + (word.size() > most ? "..." : "") + "'";
}

[[noreturn]] void reject(const Word& word, const std::string& why) {
  throw Mistake{word.column, shown(word.text) + " " + why};
}

// The items between the commas, of which there is at least one.
std::vector<Word> items_of(const Word& list) {
  std::vector<Word> items;
  for (std::size_t start = 0; start <= list.text.size();) {
    const std::size_t comma = std::min(list.text.find(',', start), list.text.size());
    const Word item{list.text.substr(start, comma - start), list.column + start};
    if (item.text.empty() && !list.text.empty())
      throw Mistake{item.column, shown(list.text) + " has nothing at one side of a comma: a list has no spaces"};
    items.push_back(item);
    if (items.size() > max_shapes) reject(list, fmt::format("has more than {} items", max_shapes));
    start = comma + 1;
  }
  return items;
}

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

using DTypes = std::pair<DType, DType>;

// "f16" or "f16->f32"
DTypes dtypes_named(const Word& word) {
  const std::size_t arrow = word.text.find("->");
  const std::optional<DType> in = plan::dtype_named(word.text.substr(0, arrow));
  const std::optional<DType> out =
      arrow == std::string_view::npos ? in : plan::dtype_named(word.text.substr(arrow + 2));
  if (!in || !out || (*in != *out && !(is_half(*in) && *out == DType::f32) && !(*in == DType::f32 && is_half(*out)))) {
    reject(word, "is not f16, bf16, f32, f64, or f16 or bf16 to or from f32 (as 'f16->f32')");
  }
  return {*in, *out};
}

// A whole number of at least 1.
std::optional<std::int64_t> count_in(std::string_view word) {
  std::int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end || value < 1) return std::nullopt;
  return value;
}

struct Range {
  std::int64_t first = 1;
  std::int64_t last = 1;
  std::int64_t step = 1;
  bool multiplies = false;
};

// "4096", "1000..1010", "1000..2000+8", "1024..8192*2"
Range range_in(const Word& word) {
  const std::size_t dots = word.text.find("..");
  if (dots == std::string_view::npos) {
    const auto one = count_in(word.text);
    if (!one) reject(word, fmt::format("is not a row length from 1 to 2^63 - 1: {}", usage));
    return {*one, *one};
  }
  const std::string_view behind = word.text.substr(dots + 2);
  const std::size_t sign = std::min(behind.find_first_of("+*"), behind.size());
  const auto first = count_in(word.text.substr(0, dots));
  const auto last = count_in(behind.substr(0, sign));
  if (!first || !last) reject(word, "is not a range of row lengths, as 1000..1010, 1000..2000+8 or 1024..8192*2");
  if (*last < *first) reject(word, "ends before it begins");
  Range range{*first, *last};
  if (sign == behind.size()) return range;
  range.multiplies = behind[sign] == '*';
  const auto step = count_in(behind.substr(sign + 1));
  if (!step || (range.multiplies && *step < 2))
    reject(word, "has a step that leads nowhere: write + and a number from 1, or * and one from 2");
  range.step = *step;
  return range;
}

void add_lengths(const Range& range, std::vector<std::int64_t>& lengths) {
  for (std::int64_t length = range.first;;) {
    lengths.push_back(length);
    if (lengths.size() > max_shapes) return;
    if (range.multiplies ? length > range.last / range.step : range.step > range.last - length) return;
    length = range.multiplies ? length * range.step : length + range.step;
  }
}

std::vector<std::int64_t> lengths_in(const Word& list) {
  std::vector<std::int64_t> lengths;
  for (const Word& item : items_of(list)) {
    add_lengths(range_in(item), lengths);
    if (lengths.size() > max_shapes)
      reject(item, fmt::format("makes more than {} lengths: take larger steps, or several files", max_shapes));
  }
  return lengths;
}

// All shapes of a line of at least one word. Throws Mistake.
std::vector<ShapeLine> shapes_of(const std::vector<Word>& words) {
  const std::vector<std::int64_t> lengths = lengths_in(words[0]);
  if (words.size() < 2)
    throw Mistake{words[0].column + words[0].text.size(), fmt::format("the element type is missing: {}", usage)};
  std::vector<DTypes> dtypes;
  for (const Word& item : items_of(words[1])) dtypes.push_back(dtypes_named(item));
  if (lengths.size() * dtypes.size() > max_shapes)
    reject(words[0], fmt::format("with {} types makes more than {} shapes", dtypes.size(), max_shapes));

  ShapeLine shape;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const Word& word = words[i];
    if (word.text == "log_softmax") {
      shape.problem.op = Op::log_softmax;
    } else if (word.text == "strided") {
      shape.problem.layout = Layout::strided;
    } else if (const auto rows = count_in(word.text); rows && i == 2) {
      shape.rows = rows;
    } else {
      reject(word, fmt::format("is not understood here: {}", usage));
    }
  }
  std::vector<ShapeLine> shapes;
  shapes.reserve(lengths.size() * dtypes.size());
  for (const std::int64_t length : lengths) {
    for (const auto& [in, out] : dtypes) {
      shape.problem.cols = length;
      shape.problem.in = in;
      shape.problem.out = out;
      shapes.push_back(shape);
    }
  }
  return shapes;
}

// Of a line without its comment.
std::vector<Word> words_of(std::string_view line) {
  constexpr std::string_view space = " \t\r\v\f";
  std::vector<Word> words;
  for (std::size_t start = line.find_first_not_of(space); start != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(space, start), line.size());
    words.push_back({line.substr(start, end - start), start + 1});
    start = line.find_first_not_of(space, end);
  }
  return words;
}

std::string contents_of(std::istream& stream, const std::string& path) {
  std::string text(max_file_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (stream.bad()) fail(fmt::format("'{}' cannot be read", path));
  if (text.size() > max_file_bytes)
    fail(fmt::format("'{}' has more than {} bytes, which is no shapes file", path, max_file_bytes));
  return text;
}

}  // namespace

std::int64_t rows_of(const ShapeLine& line) noexcept {
  constexpr std::int64_t elements = std::int64_t{1} << 26;
  return line.rows.value_or(std::max<std::int64_t>(1, elements / std::max<std::int64_t>(line.problem.cols, 1)));
}

ShapeLine parse_shape(const std::vector<std::string>& words) {
  try {
    std::vector<Word> all;
    all.reserve(words.size());
    for (const std::string& word : words) all.push_back({word});
    const std::vector<ShapeLine> shapes = shapes_of(all);
    if (shapes.size() != 1) fail(fmt::format("{} is more than one shape; name one", shown(words[0] + " " + words[1])));
    return shapes.front();
  } catch (const Mistake& mistake) {
    fail(mistake.message);
  }
}

std::vector<ShapeLine> parse_shapes(std::string_view text, const std::string& name) {
  std::vector<ShapeLine> all;
  for (std::size_t number = 1, start = 0; start < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    const std::vector<Word> words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    try {
      const std::vector<ShapeLine> shapes = shapes_of(words);
      if (all.size() + shapes.size() > max_shapes)
        reject(words[0], fmt::format("goes beyond {} shapes, which one file may have", max_shapes));
      all.insert(all.end(), shapes.begin(), shapes.end());
    } catch (const Mistake& mistake) {
      fail(fmt::format("{}:{}:{}: {}", name, number, mistake.column, mistake.message));
    }
  }
  if (all.empty()) fail(fmt::format("'{}' has no shape: add lines such as '4096 f32'", name));
  return all;
}

std::vector<ShapeLine> read_shapes(const std::string& path) {
  if (path == "-") return parse_shapes(contents_of(std::cin, "standard input"), "standard input");
  std::ifstream file(path);
  if (!file) {
    fail(fmt::format("'{}' cannot be opened: {}", path, std::generic_category().message(errno)));
  }
  return parse_shapes(contents_of(file, path), path);
}

std::vector<Problem> problems_of(const std::vector<ShapeLine>& lines) {
  std::vector<Problem> problems;
  std::set<std::tuple<std::int64_t, DType, DType, Op, Layout>> seen;
  for (const auto& [problem, rows] : lines) {
    if (seen.emplace(problem.cols, problem.in, problem.out, problem.op, problem.layout).second)
      problems.push_back(problem);
  }
  return problems;
}

}  // namespace jitsoftmax::tools
