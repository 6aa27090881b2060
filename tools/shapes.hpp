// Shapes files: which problems to prepare, as plain text.
//
// Shapes a line: `N dtype [rows] [log_softmax] [strided]`. N is the length of a row, dtype is f16, bf16,
// f32, f64, or f16 or bf16 on one side and f32 on the other of an arrow (`f16->f32`). `rows` is the number of
// rows that the shape is mostly used with; kernels do not depend on it. `#` starts a comment.
//
// N and dtype may be lists, `64,128,4096 f32,bf16`: every length with every type. An item of N may be a
// range, both ends included: `1000..1010` is every length, `1000..2000+8` every eighth, `1024..8192*2`
// each twice the one before. Where a step does not meet the end, the range ends before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <jitsoftmax/problem.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitsoftmax::tools {

// Of one file; a range is quickly written and slowly compiled.
inline constexpr std::size_t max_shapes = 65536;

// What one line can say, for --help.
inline constexpr const char* shapes_help =
    "Lines of 'N dtype [rows] [log_softmax] [strided]'; N and dtype may be lists (64,128 f32,bf16), N ranges too "
    "(1000..1010, 1000..2000+8, 1024..8192*2); # comments; - reads standard input";

struct ShapeLine {
  Problem problem;
  std::optional<std::int64_t> rows;
};

// The rows that the shape is measured with: those of its line, else as many as make 2^26 elements.
[[nodiscard]] std::int64_t rows_of(const ShapeLine& line) noexcept;

// The one shape of a line's words, of which there is at least one. Throws Failure.
[[nodiscard]] ShapeLine parse_shape(const std::vector<std::string>& words);

// In the order of the lines, then of lengths, then of types. Pure; `name` stands in messages. Throws Failure
// that names the file, the line, the column and the word.
[[nodiscard]] std::vector<ShapeLine> parse_shapes(std::string_view text, const std::string& name);
// "-" is standard input.
[[nodiscard]] std::vector<ShapeLine> read_shapes(const std::string& path);

// The problems of the lines, each once, in the order of the file.
[[nodiscard]] std::vector<Problem> problems_of(const std::vector<ShapeLine>& lines);

}  // namespace jitsoftmax::tools
