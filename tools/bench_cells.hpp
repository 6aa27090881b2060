// The cells of a benchmark's JSON: what was measured, as shares of the copy of the same run.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace jitsoftmax::tools {

struct BenchCell {
  std::string name;             // "4096x4096 f32 best"; no other cell of the benchmark has it
  std::optional<double> share;  // of the speed of the copy, greater than 0; nothing: it was not timed
  std::string error;            // why not
};

struct BenchCells {
  std::string source;  // the file, for messages
  std::string device;
  std::vector<BenchCell> cells;
};

// `text`: as `bench --json` writes it. Kernels of one shape that share a name are told apart by their
// specializations. Throws Failure (usage) that says what is wrong with it.
[[nodiscard]] BenchCells parse_bench(const std::string& text, const std::string& source);
[[nodiscard]] BenchCells read_bench(const std::string& path);

}  // namespace jitsoftmax::tools
