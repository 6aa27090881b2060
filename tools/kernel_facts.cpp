#include "kernel_facts.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "cache/key.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::tools {

KernelFacts facts_of(const plan::Specialization& s, const jit::Cubin& cubin, const Arch& arch) {
  KernelFacts facts{.used = cubin.resources, .occupancy = {}};
  const auto limits = plan::multiprocessor_limits(arch);
  if (!limits || cubin.kind != jit::PayloadKind::cubin) return facts;
  facts.occupancy = plan::occupancy(s.config.threads * s.config.rows, static_cast<int>(cubin.resources.registers),
                                    std::int64_t{s.config.shared} + cubin.resources.shared_bytes, *limits);
  return facts;
}

std::optional<KernelFacts> cached_facts(cache::Store& store, const plan::Specialization& specialization,
                                        const Arch& arch) {
  const jit::Program program = jit::program(specialization, arch);
  const std::optional<jit::Cubin> cubin = store.find(cache::key_of(program, jit::templates()), program);
  return cubin ? std::optional(facts_of(specialization, *cubin, arch)) : std::nullopt;
}

void add_facts(nlohmann::ordered_json& object, const KernelFacts& facts) {
  if (facts.used.registers == 0) return;  // PTX: not known
  object["registers"] = facts.used.registers;
  object["stack_bytes"] = facts.used.stack_bytes;
  object["spill_bytes"] = facts.used.spill_bytes;
  if (!facts.occupancy) return;
  object["occupancy"] = {{"blocks", facts.occupancy->blocks},
                         {"warps", facts.occupancy->warps},
                         {"bounded_by", plan::name_of(facts.occupancy->bound)}};
}

}  // namespace jitsoftmax::tools
