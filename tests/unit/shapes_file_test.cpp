// Shapes files: every line means what it says, or the error names it.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "temporary_directory.hpp"
#include "tools/exit_code.hpp"
#include "tools/shapes.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;

std::vector<ShapeLine> parse(const std::string& text) {
  std::istringstream stream(text);
  return parse_shapes(stream, "shapes.txt");
}

std::string refusal(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const Failure& failure) {
    CHECK(failure.exit_code() == exit_code::usage);
    return failure.what();
  }
  return "accepted";
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Problem problem(std::int64_t cols, DType in, DType out, Op op = Op::softmax, Layout layout = Layout::contiguous) {
  Problem p;
  p.cols = cols;
  p.in = in;
  p.out = out;
  p.op = op;
  p.layout = layout;
  return p;
}

}  // namespace

TEST_CASE("every part of a line is understood") {
  const std::vector<ShapeLine> lines = parse(
      "# what we serve\n"
      "4096 f32\n"
      "\n"
      "  128256\tbf16  32   # logits\r\n"
      "1000 f16->f32 log_softmax\n"
      "77 f32->bf16 12 strided log_softmax\n"
      "1 f64 strided");
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].problem == problem(4096, DType::f32, DType::f32));
  CHECK_FALSE(lines[0].rows);
  CHECK(lines[1].problem == problem(128256, DType::bf16, DType::bf16));
  CHECK(lines[1].rows == 32);
  CHECK(lines[2].problem == problem(1000, DType::f16, DType::f32, Op::log_softmax));
  CHECK(lines[3].problem == problem(77, DType::f32, DType::bf16, Op::log_softmax, Layout::strided));
  CHECK(lines[3].rows == 12);
  CHECK(lines[4].problem == problem(1, DType::f64, DType::f64, Op::softmax, Layout::strided));
}

TEST_CASE("a problem counts once, however many lines ask for it with whatever rows") {
  const std::vector<Problem> problems = problems_of(parse("8 f32 1\n9 f32\n8 f32 2\n8 f32\n8 f16\n"));
  CHECK(problems == std::vector<Problem>{problem(8, DType::f32, DType::f32), problem(9, DType::f32, DType::f32),
                                         problem(8, DType::f16, DType::f16)});
}

TEST_CASE("an error names the file, the line and the word") {
  for (const std::string line : {"4k f32", "-1 f32", "0 f32", "1.5 f32", "99999999999999999999 f32", "f32 4096"}) {
    const std::string message = refusal("8 f32\n\n" + line + "\n");
    CHECK(mentions(message, "shapes.txt:3: '" + line.substr(0, line.find(' ')) + "'"));
  }
  CHECK(mentions(refusal("8\n"), "shapes.txt:1: the element type is missing"));
  for (const std::string dtype : {"fp32", "F32", "f8", "f32->", "->f32", "f64->f32", "f16->bf16", "f16->f32->f16"}) {
    CHECK(mentions(refusal("# x\n8 " + dtype + "\n"), "shapes.txt:2: '" + dtype + "' is not f16, bf16, f32, f64"));
  }
  for (const std::string word : {"0", "-4", "many", "softmax", "log", "4x"}) {
    CHECK(mentions(refusal("8 f32 " + word), "shapes.txt:1: '" + word + "' is not understood"));
  }
  CHECK(mentions(refusal("8 f32 strided 12"), "'12' is not understood"));
  CHECK(mentions(refusal("8 f32 12 13"), "'13' is not understood"));
}

TEST_CASE("a file without a shape, or that is not there, is an error") {
  CHECK(mentions(refusal("# nothing\n\n"), "no shape"));
  CHECK(mentions(refusal(""), "no shape"));
  const jitsoftmax::testing::TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(read_shapes(directory / "missing.txt"), doctest::Contains("missing.txt"), Failure);
  CHECK_THROWS_AS(read_shapes(directory.path()), Failure);
  jitsoftmax::testing::write_file(directory / "s.txt", "8 f32\n9 x\n");
  CHECK_THROWS_WITH_AS(read_shapes(directory / "s.txt"), doctest::Contains("s.txt:2: 'x'"), Failure);
}
