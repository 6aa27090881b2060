// Shapes files: every line means what it says, or the error names it.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "temporary_directory.hpp"
#include "tools/exit_code.hpp"
#include "tools/shapes.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;

std::vector<ShapeLine> parse(const std::string& text) { return parse_shapes(text, "shapes.txt"); }

std::string refusal(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const Failure& failure) {
    CHECK(failure.exit_code() == exit_code::usage);
    return failure.what();
  }
  return "accepted";
}

std::vector<std::int64_t> lengths(const std::string& word) {
  std::vector<std::int64_t> all;
  for (const ShapeLine& line : parse(word + " f32")) all.push_back(line.problem.cols);
  return all;
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
    CHECK(mentions(message, "shapes.txt:3:1: '" + line.substr(0, line.find(' ')) + "'"));
  }
  CHECK(mentions(refusal("8\n"), "shapes.txt:1:2: the element type is missing"));
  for (const std::string dtype : {"fp32", "F32", "f8", "f32->", "->f32", "f64->f32", "f16->bf16", "f16->f32->f16"}) {
    CHECK(mentions(refusal("# x\n8 " + dtype + "\n"), "shapes.txt:2:3: '" + dtype + "' is not f16, bf16, f32, f64"));
  }
  for (const std::string word : {"0", "-4", "many", "softmax", "log", "4x"}) {
    CHECK(mentions(refusal("8 f32 " + word), "shapes.txt:1:7: '" + word + "' is not understood"));
  }
  CHECK(mentions(refusal("8 f32 strided 12"), "'12' is not understood"));
  CHECK(mentions(refusal("8 f32 12 13"), "'13' is not understood"));
}

TEST_CASE("ranges have both ends, and every length or the step that they name") {
  using Lengths = std::vector<std::int64_t>;
  CHECK(lengths("1000..1003") == Lengths{1000, 1001, 1002, 1003});
  CHECK(lengths("7..7") == Lengths{7});
  CHECK(lengths("1000..1010+5") == Lengths{1000, 1005, 1010});
  CHECK(lengths("1000..1009+5") == Lengths{1000, 1005});
  CHECK(lengths("1024..8192*2") == Lengths{1024, 2048, 4096, 8192});
  CHECK(lengths("3..80*3") == Lengths{3, 9, 27});
  CHECK(lengths("64,128,1..3,4096") == Lengths{64, 128, 1, 2, 3, 4096});
  // To the last number that there is, and no further.
  CHECK(lengths("9223372036854775806..9223372036854775807") == Lengths{9223372036854775806, 9223372036854775807});
  CHECK(lengths("4611686018427387904..9223372036854775807*2") == Lengths{4611686018427387904});
  CHECK(lengths("1..9223372036854775807*2").size() == 63);
}

TEST_CASE("a list is every length with every type, in that order, with all that the line says") {
  const std::vector<ShapeLine> lines = parse("8,16 f32,bf16->f32 12 log_softmax strided # both\n");
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].problem == problem(8, DType::f32, DType::f32, Op::log_softmax, Layout::strided));
  CHECK(lines[1].problem == problem(8, DType::bf16, DType::f32, Op::log_softmax, Layout::strided));
  CHECK(lines[3].problem == problem(16, DType::bf16, DType::f32, Op::log_softmax, Layout::strided));
  for (const ShapeLine& line : lines) CHECK(line.rows == 12);
  CHECK(problems_of(parse("8,8,16 f32\n4..16*2 f32")).size() == 3);
}

TEST_CASE("a range or a list that makes no sense is named with its column") {
  for (const std::string range : {"..", "1..", "..5", "0..5", "1..2..3", "1..x", "1...3", "a..b", "1..-2"})
    CHECK(mentions(refusal(range + " f32"), "shapes.txt:1:1: '" + range + "' is not a range of row lengths"));
  for (const std::string range : {"1..5+", "1..5+0", "1..5*1", "1..5*", "1..5+-1", "1..5+x"})
    CHECK(mentions(refusal("8," + range + " f32"), "shapes.txt:1:3: '" + range + "' has a step that leads nowhere"));
  CHECK(mentions(refusal("  9..8 f32"), "shapes.txt:1:3: '9..8' ends before it begins"));
  for (const std::string list : {",8", "8,", "8,,9", ","})
    CHECK(mentions(refusal(list + " f32"), "'" + list + "' has nothing at one side of a comma"));
  CHECK(mentions(refusal("64, 128 f32"), "shapes.txt:1:4: '64,' has nothing"));
  CHECK(mentions(refusal("8,4k f32"), "shapes.txt:1:3: '4k' is not a row length"));
  CHECK(mentions(refusal("8 f32,f31"), "shapes.txt:1:7: 'f31' is not f16"));
}

TEST_CASE("more shapes than anybody waits for are refused before they take memory") {
  CHECK(parse("1..65536 f32").size() == max_shapes);
  for (const std::string line :
       {"1..65537 f32", "1..9223372036854775807 f32", "1..9223372036854775807+3 f32", "1..40000,1..40000 f32"})
    CHECK(mentions(refusal(line), "makes more than 65536 lengths"));
  CHECK(mentions(refusal("1..40000 f32,f16"), "with 2 types makes more than 65536 shapes"));
  CHECK(mentions(refusal("1..40000 f32\n1..40000 f16\n"), "shapes.txt:2:1: '1..40000' goes beyond 65536 shapes"));
  std::string commas(1 << 20, ',');
  for (std::size_t i = 0; i < commas.size(); i += 2) commas[i] = '1';
  CHECK(mentions(refusal(commas + "1 f32"), "has more than 65536 items"));
}

TEST_CASE("whatever bytes a file holds, it is read or refused with words that can be printed") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  constexpr char bytes[] = "0123456789.,+*->#\n\t bf16f32 log_softmax strided\x01\xff\0";
  const std::string alphabet(bytes, sizeof bytes);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (unsigned i = 0; i < random() % 40; ++i) text += alphabet[random() % alphabet.size()];
    const std::string message = refusal(text);
    CHECK(message.find_first_of(std::string("\0\x01\n", 3)) == std::string::npos);
  }
  CHECK(refusal(std::string(100'000, '9') + " f32").size() < 300);
}

TEST_CASE("a file without a shape, or that is not there, is an error") {
  CHECK(mentions(refusal("# nothing\n\n"), "no shape"));
  CHECK(mentions(refusal(""), "no shape"));
  const jitsoftmax::testing::TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(read_shapes(directory / "missing.txt"), doctest::Contains("missing.txt"), Failure);
  CHECK_THROWS_AS(read_shapes(directory.path()), Failure);
  jitsoftmax::testing::write_file(directory / "s.txt", "8 f32\n9 x\n");
  CHECK_THROWS_WITH_AS(read_shapes(directory / "s.txt"), doctest::Contains("s.txt:2:3: 'x'"), Failure);
}
