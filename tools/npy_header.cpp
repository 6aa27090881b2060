#include "npy_header.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "exit_code.hpp"

namespace jitsoftmax::tools::npy {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Failure(exit_code::usage, message); }

// The literals that NumPy writes into a header: strings, True and False, tuples of integers.
class Literals {
 public:
  explicit Literals(std::string_view text) : text_(text) {}

  [[nodiscard]] char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char wanted) {
    if (peek() != wanted || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) malformed(fmt::format("a '{}'", wanted));
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed("a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) malformed("the end of a string");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    (void)peek();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    malformed("True or False");
  }

  std::int64_t dimension() {
    if (peek() == '-') fail("the shape has a negative dimension: save the array again");
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("the shape has a dimension beyond 2^63: save the array again");
    if (error != std::errc()) malformed("an integer");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // NumPy under Python 2 wrote (3L, 4L)
    return value;
  }

  Shape shape() {
    expect('(');
    Shape values;
    while (!accept(')')) {
      values.push_back(dimension());
      if (accept(',')) continue;
      if (values.size() == 1) malformed("a ',' after the only dimension");  // (3) is no tuple
      expect(')');
      break;
    }
    return values;
  }

  [[noreturn]] void malformed(const std::string& expected) const {
    fail(fmt::format("the header is not a NumPy dictionary: expected {} at byte {}: save the array again", expected,
                     at_));
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

DType dtype_of(std::string_view descr) {
  std::string_view type = descr;
  const char order = type.empty() ? '\0' : type.front();
  const bool marked = order == '<' || order == '>' || order == '=' || order == '|';
  if (marked) type.remove_prefix(1);
  const std::optional<DType> found = type == "f2"   ? std::optional(DType::f16)
                                     : type == "f4" ? std::optional(DType::f32)
                                     : type == "f8" ? std::optional(DType::f64)
                                                    : std::nullopt;
  if (found && order == '>') {
    fail(fmt::format("the data are big-endian ('{}'): save x.astype('<{}') instead", descr, type));
  }
  if (found) return *found;
  if (type.starts_with('O')) {
    fail("the array holds Python objects: save numpy.asarray(x.tolist(), dtype=numpy.float32) instead");
  }
  if (type == "V2") {
    fail("dtype 'V2' is what NumPy makes of bfloat16, which .npy cannot name: save x.astype(numpy.float32) instead");
  }
  fail(fmt::format("dtype '{}' is not float16, float32 or float64: save x.astype(numpy.float32) instead", descr));
}

// Whether Fortran order and C order are the same order.
bool both_orders(const Shape& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  return std::count_if(shape.begin(), shape.end(), [](std::int64_t n) { return n != 1; }) <= 1;
}

}  // namespace

std::size_t byte_count(const Header& header) {
  if (std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end()) return 0;
  std::int64_t bytes = size_of(header.dtype);
  for (const std::int64_t dimension : header.shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) {
      fail(fmt::format("shape {} of {} has more bytes than memory can hold: save the array again, in parts",
                       describe(header.shape), numpy_name(header.dtype)));
    }
  }
  return static_cast<std::size_t>(bytes);
}

Header parse_header(std::string_view dictionary) {
  Literals literals(dictionary);
  std::optional<DType> dtype;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;

  literals.expect('{');
  while (!literals.accept('}')) {
    const std::string_view key = literals.string();
    literals.expect(':');
    if (key == "descr" && !dtype) {
      if (const char next = literals.peek(); next == '[' || next == '(') {
        fail("the array is structured: save one of its fields instead, numpy.ascontiguousarray(x['field'])");
      }
      dtype = dtype_of(literals.string());
    } else if (key == "fortran_order" && !fortran_order) {
      fortran_order = literals.boolean();
    } else if (key == "shape" && !shape) {
      shape = literals.shape();
    } else {
      fail(fmt::format("the header has the key '{}' twice, or should not have it: save the array again", key));
    }
    if (literals.accept(',')) continue;
    literals.expect('}');
    break;
  }
  if (literals.peek() != '\0') literals.malformed("nothing more");
  if (!dtype || !fortran_order || !shape) {
    fail("the header lacks 'descr', 'fortran_order' or 'shape': save the array again");
  }
  if (shape->empty()) fail("the array has no dimension: softmax needs a row; save x.reshape(1) instead");
  if (*fortran_order && !both_orders(*shape)) {
    fail("the array is in Fortran order: save numpy.ascontiguousarray(x) instead");
  }
  return {*dtype, *std::move(shape)};
}

std::string header_bytes(const Header& header) {
  std::string text = fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': {}, }}", size_of(header.dtype),
                                 describe(header.shape));
  const auto prefix = [](bool wide) { return std::size_t{wide ? 12U : 10U}; };
  // The data start at a multiple of 64, as NumPy wants it for memory maps.
  const auto padded = [&](bool wide) { return (prefix(wide) + text.size() + 1 + 63) / 64 * 64 - prefix(wide); };
  const bool wide = padded(false) > 0xffff;  // version 1.0 has two bytes for the length
  const std::size_t length = padded(wide);
  text.resize(length - 1, ' ');
  text += '\n';

  std::string bytes = "\x93NUMPY";
  bytes += wide ? '\x02' : '\x01';
  bytes += '\0';
  for (std::size_t i = 0; i < (wide ? 4U : 2U); ++i) bytes += static_cast<char>((length >> (8 * i)) & 0xffU);
  return bytes + text;
}

std::string_view numpy_name(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
  }
  return "?";
}

std::string describe(const Shape& shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape.front());
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace jitsoftmax::tools::npy
