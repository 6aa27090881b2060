// Who competes in a benchmark: engines, each of which chooses one kernel.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <memory>
#include <string>
#include <vector>

#include "api/code.hpp"
#include "bench_case.hpp"
#include "kernel_facts.hpp"

namespace jitsoftmax::tools {

struct Contenders {
  std::vector<std::unique_ptr<Engine>> engines;  // one a contender: a variant is an option of an engine
  std::vector<Contender> list;
  FactsByKernel facts;  // of the kernels that were compiled for them

  void add(const std::string& name, Options options, const Variant& variant);
  // What is known of the kernels that were measured.
  void describe(BenchCase& result) const;
};

// `given`: the built-in choice ("best", or nothing), beside what the tuning records pick ("tuned") or beside the
// named versions ("all"), or one kernel.
[[nodiscard]] Contenders named_contenders(Options options, const Variant& given);

// One for each candidate of the problem that takes no local memory. Their kernels are compiled here, in parallel.
[[nodiscard]] Contenders every_candidate(const Options& options, const Problem& problem, const Arch& arch);

}  // namespace jitsoftmax::tools
