#include "bench_contenders.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "logger.hpp"
#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/variants.hpp"

namespace jitsoftmax::tools {

void Contenders::add(const std::string& name, Options options, const Variant& variant) {
  options.variant = variant;
  engines.push_back(std::make_unique<Engine>(std::move(options)));
  list.push_back({name, engines.back().get()});
}

void Contenders::describe(BenchCase& result) const {
  for (Measured& measured : result.kernels) {
    if (const auto found = facts.find(measured.kernel); found != facts.end()) measured.facts = found->second;
  }
}

Contenders named_contenders(Options options, const Variant& given) {
  Contenders result;
  const bool all = given.name == "all";
  const bool tuned = given.name == "tuned";
  options.use_records = false;
  if (all || tuned || given.name == "best" || given.empty()) result.add("best", options, {});
  options.use_records = true;
  if (tuned) result.add("tuned", options, {});
  if (all) {
    for (const std::string& name : plan::variant_names()) {
      Variant variant;
      variant.name = name;
      result.add(name, options, variant);
    }
  }
  if (result.list.empty()) result.add(given.name.empty() ? "given" : given.name, options, given);
  return result;
}

Contenders every_candidate(const Options& options, const Problem& problem, const Arch& arch) {
  const std::vector<plan::Specialization> candidates = plan::candidates(problem, arch);
  Contenders result;
  Code code(options);
  std::vector<char> fits(candidates.size(), 1);  // char: written by several threads
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // of the facts
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      workers.emplace_back([&] {
        for (std::size_t at = next++; at < candidates.size(); at = next++) {
          try {
            // The kernel that is timed, and the rest of its bundle.
            for (const plan::Specialization& s : plan::bundle_of(candidates[at], false)) {
              const KernelFacts facts = facts_of(s, code.get(s, arch, Code::Purpose::warmup).cubin, arch);
              if (facts.used.stack_bytes != 0 || facts.used.spill_bytes != 0) fits[at] = 0;
              const std::lock_guard lock(mutex);
              result.facts.emplace(plan::name_expression(s), facts);
            }
          } catch (const Error& error) {
            logger().warn("{}: {}", plan::name_expression(candidates[at]), error.what());
          }
        }
      });
    }
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (fits[i] == 0) continue;
    result.add(std::string(plan::name_of(candidates[i].family)), options, plan::variant_of(candidates[i]));
  }
  return result;
}

}  // namespace jitsoftmax::tools
