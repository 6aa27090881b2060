// KernelFacts: what a kernel takes of a multiprocessor, as the assembler says and as follows from it.
#pragma once

#include <jitsoftmax/engine.hpp>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cache/store.hpp"
#include "jit/cubin.hpp"
#include "plan/occupancy.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax::tools {

struct KernelFacts {
  jit::Resources used;                       // all 0 for PTX
  std::optional<plan::Occupancy> occupancy;  // nothing where the limits or the registers are not known
};
using FactsByKernel = std::map<std::string, KernelFacts>;  // by the spelling of the specialization

[[nodiscard]] KernelFacts facts_of(const plan::Specialization& specialization, const jit::Cubin& cubin,
                                   const Arch& arch);

// Of a kernel that is in a cache directory; compiles nothing.
[[nodiscard]] std::optional<KernelFacts> cached_facts(cache::Store& store, const plan::Specialization& specialization,
                                                      const Arch& arch);

// Adds "registers", "stack_bytes", "spill_bytes" and "occupancy" to an object, as far as they are known.
void add_facts(nlohmann::ordered_json& object, const KernelFacts& facts);

}  // namespace jitsoftmax::tools
