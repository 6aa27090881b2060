// Promise of tools/shapes.hpp: a shapes file is read, or refused as a whole with the line that is wrong.
#include "tools/shapes.hpp"

#include <algorithm>
#include <string>

#include "fuzz/fuzz_target.hpp"
#include "tools/exit_code.hpp"

namespace {

using namespace jitsoftmax;  // NOLINT(google-build-using-namespace)

void check(const std::vector<tools::ShapeLine>& lines) {
  fuzz::require(!lines.empty() && lines.size() <= tools::max_shapes, "there are shapes, and not too many");
  for (const tools::ShapeLine& line : lines) {
    fuzz::require(line.problem.cols >= 1, "rows have elements");
    fuzz::require(tools::rows_of(line) >= 1, "there are rows");
  }
  if (lines.size() > 1000) return;  // each is compared with each
  const std::vector<Problem> problems = tools::problems_of(lines);
  for (auto it = problems.begin(); it != problems.end(); ++it)
    fuzz::require(std::find(problems.begin(), it, *it) == it, "each problem is listed once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check(tools::parse_shapes({reinterpret_cast<const char*>(data), size}, "shapes.txt"));
  } catch (const tools::Failure& failure) {
    fuzz::require(std::string(failure.what()).find("shapes.txt") != std::string::npos, "a refusal names the file");
  }
  return 0;
}
