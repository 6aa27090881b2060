// Shapes files: which problems to prepare, as plain text.
//
// One shape a line: `N dtype [rows] [log_softmax] [strided]`. N is the length of a row, dtype is
// f16, bf16, f32, f64, or f16 or bf16 on one side and f32 on the other of an arrow (`f16->f32`).
// `rows` is the number of rows that the shape is mostly used with; kernels do not depend on it.
// `#` starts a comment.
#pragma once

#include <cstdint>
#include <istream>
#include <jitsoftmax/problem.hpp>
#include <optional>
#include <string>
#include <vector>

namespace jitsoftmax::tools {

struct ShapeLine {
  Problem problem;
  std::optional<std::int64_t> rows;
};

// The rows that the shape is measured with: those of its line, else as many as make 2^26 elements.
[[nodiscard]] std::int64_t rows_of(const ShapeLine& line) noexcept;

// The shape of one line's words. Throws Failure.
[[nodiscard]] ShapeLine parse_shape(const std::vector<std::string>& words);

// `name` stands in messages. Throws Failure that names the file and the line.
[[nodiscard]] std::vector<ShapeLine> parse_shapes(std::istream& text, const std::string& name);
[[nodiscard]] std::vector<ShapeLine> read_shapes(const std::string& path);

// The problems of the lines, each once, in the order of the file.
[[nodiscard]] std::vector<Problem> problems_of(const std::vector<ShapeLine>& lines);

}  // namespace jitsoftmax::tools
