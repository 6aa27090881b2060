// Explanation: which kernels a launch would run, who chose them, and what they take.
#pragma once

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string>
#include <vector>

#include "jit/cubin.hpp"
#include "plan/choice.hpp"
#include "plan/occupancy.hpp"
#include "plan/specialization.hpp"
#include "shapes.hpp"

namespace jitsoftmax::tools {

// The bundle that an engine would have, and for what.
struct Choice {
  Arch arch;
  std::string device;  // its name, "" where only an architecture is known
  plan::Bundle bundle;
};

// The built-in choice for an architecture.
[[nodiscard]] Choice choose_for(const Problem& problem, const Arch& arch);

// What an engine with these options runs on a GPU: the picks of its tuning records in the place of the
// built-in choice. Throws no_driver where there is no GPU.
[[nodiscard]] Choice choose_on(const Problem& problem, int ordinal, const Options& options);

// The kernel of this spelling, aligned or not, in the place of the bundle. Throws Failure (usage) unless this library
// makes it for the problem.
[[nodiscard]] plan::Bundle bundle_spelled(const Problem& problem, const std::string& spelling);

// What to show besides.
struct Listings {
  bool ptx = false;
  bool sass = false;
};

// One member of the bundle.
struct ExplainedKernel {
  plan::Specialization specialization;
  bool for_aligned = false;  // runs for rows that are aligned to whole accesses; neither: to pairs of elements
  bool for_others = false;   // runs for any others
  bool compiled = false;     // else found in the cache
  jit::Cubin cubin = {};
  std::optional<plan::Occupancy> occupancy = {};  // nothing where the limits or the registers are not known
  std::optional<std::int64_t> blocks = {};        // of the launch; nothing where they depend on the device
  std::optional<double> predicted = {};           // share of the copy's speed; nothing where there is no model
  std::string ptx = {};                           // where it was asked for
  std::string sass = {};                          // the same
};

struct Explanation {
  Problem problem;
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  // read once and written once
  Choice choice = {};
  std::vector<ExplainedKernel> kernels = {};  // those that run for so many rows: one or two
};

// Compiles, by way of the cache, what is not there. Throws Failure (usage) where the bytes overflow, Failure
// (incomplete) where there is no SASS to be had, and Error as a compile does.
[[nodiscard]] Explanation explain(const ShapeLine& shape, Choice choice, const Options& options,
                                  const Listings& listings);

}  // namespace jitsoftmax::tools
