// `bench --study`: the online-softmax lesson that this library grew from, measured. Its steps, and what it costs to
// keep a row in registers, by how many elements a thread has of it, with a trip count that the compiler knows
// and one that is known only at the launch. Pure, but for study_contenders.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench_contenders.hpp"
#include "bench_report.hpp"
#include "shapes.hpp"

namespace jitsoftmax::tools {

struct StudyKernel {
  std::string name;  // "v1", "registers 8", "counted 8"
  Variant variant;
  int reads = 0;                // of every element, as the kernel asks for them; caches may serve some
  std::optional<double> a100;   // of the theoretical bandwidth of an A100, as the lesson gives it
  std::optional<int> elements;  // a thread, where a row is kept in registers; nothing: a step of the lesson
};

// The shape of `lines`, or, without any, the lesson's. Throws Failure (usage) unless it is one whose rows are
// contiguous.
[[nodiscard]] ShapeLine study_shape(const std::vector<ShapeLine>& lines);

// safe3, v0 to v4, then pairs of registers and counted, with 4, 8, ... 64 elements a thread as far as a
// block has the threads for them.
[[nodiscard]] std::vector<StudyKernel> study_kernels(const Problem& problem);

// Compiles them.
[[nodiscard]] Contenders study_contenders(const std::vector<StudyKernel>& kernels, const Options& options,
                                          const Problem& problem, const Arch& arch);

// `report` has one case, of these kernels in their order.
[[nodiscard]] std::string study_text(const BenchReport& report, const std::vector<StudyKernel>& kernels);
// What to_json says, and of every kernel the share of the theoretical bandwidth, the lesson's, the bytes that it asks
// for, and the options that make `jitsoftmax run` launch it.
[[nodiscard]] std::string study_json(const BenchReport& report, const std::vector<StudyKernel>& kernels);

}  // namespace jitsoftmax::tools
