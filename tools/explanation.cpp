#include "explanation.hpp"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "api/autotune.hpp"
#include "api/code.hpp"
#include "cache/key.hpp"
#include "cache/store.hpp"
#include "cuda/device.hpp"
#include "disassembler.hpp"
#include "exit_code.hpp"
#include "jit/source.hpp"
#include "kernel_facts.hpp"
#include "plan/launch.hpp"
#include "plan/prediction.hpp"
#include "plan/tuned.hpp"
#include "tune/records.hpp"

namespace jitsoftmax::tools {
namespace {

constexpr std::int64_t widest = 64;  // bytes, and elements: beyond any access

// The member of the bundle that runs for so many rows, at addresses and distances that are multiples of so many
// elements, but of no more.
std::size_t serving(const plan::Bundle& bundle, const Problem& problem, std::int64_t count, std::int64_t step) {
  alignas(2 * widest) std::array<std::byte, 2 * widest * 8> memory{};
  Rows rows;
  rows.count = count;
  rows.in = memory.data() + step * size_of(problem.in);
  rows.out = memory.data() + step * size_of(problem.out);
  rows.in_stride = rows.out_stride = step;
  if (problem.layout == Layout::strided) rows.inner = step;
  return plan::select(bundle, rows);
}

std::int64_t bytes_moved(const Problem& problem, std::int64_t rows) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, problem.cols, &bytes) ||
      __builtin_mul_overflow(bytes, size_of(problem.in) + size_of(problem.out), &bytes)) {
    throw Failure(exit_code::usage,
                  fmt::format("{} rows of {} are more bytes than 64 bits can count", rows, plan::describe(problem)));
  }
  return bytes;
}

std::optional<std::int64_t> blocks_of(const plan::Specialization& s, std::int64_t count) {
  if (s.config.persistent || s.family == plan::Family::split) return std::nullopt;  // the device has a say
  return ((count - 1) / plan::rows_of_tile(s) + 1) * s.config.cluster;
}

}  // namespace

Choice choose_for(const Problem& problem, const Arch& arch) {
  return {.arch = arch, .device = {}, .bundle = plan::choose(problem, arch)};
}

Choice choose_on(const Problem& problem, int ordinal, const Options& options) {
  const cuda::PrimaryContext context(ordinal);
  Choice choice = choose_for(problem, cuda::architecture(context.device()));
  choice.device = cuda::device_name(context.device());
  tune::Records records({.layers = options.cache_layers,
                         .directory = cache::resolve_directory(options.cache_dir),
                         .templates = cache::digest_of(jit::templates()).hex(),
                         .log = options.log,
                         .trusted = options.trusted_owners});
  choice.bundle = plan::with_picks(choice.bundle, recorded_picks(records, problem, choice.bundle, context.device()));
  return choice;
}

plan::Bundle bundle_spelled(const Problem& problem, const std::string& spelling) {
  // A spelling as `bench` prints it says how its rows are aligned; what is known by its spelling leaves that open.
  std::string open = spelling;
  for (const std::string_view alignment : {",.aligned=true", ",.peeled=true"}) {
    if (const std::size_t at = open.find(alignment); at != std::string::npos) open.erase(at, alignment.size());
  }
  const auto named = plan::specialization_named(problem, open);
  if (!named) {
    throw Failure(exit_code::usage,
                  fmt::format("'{}' is no kernel that this library makes for {}", spelling, plan::describe(problem)));
  }
  plan::Bundle bundle = plan::bundle_of(*named, false);
  for (plan::Specialization& s : bundle) s.origin = Origin::variant;
  return bundle;
}

Explanation explain(const ShapeLine& shape, Choice choice, const Options& options, const Listings& listings) {
  Explanation result{.problem = shape.problem, .rows = rows_of(shape)};
  result.bytes = bytes_moved(result.problem, result.rows);
  // For a GPU at hand as a launch would have it, else for exactly the architecture.
  const Code::Purpose purpose = choice.device.empty() ? Code::Purpose::inspect : Code::Purpose::tuning;
  Code code(options);
  std::optional<Disassembler> disassemble;
  if (listings.sass) disassemble.emplace();
  const std::size_t aligned = serving(choice.bundle, result.problem, result.rows, widest);
  const std::size_t in_pairs = serving(choice.bundle, result.problem, result.rows, 2);
  const std::size_t others = serving(choice.bundle, result.problem, result.rows, 1);
  for (std::size_t member = 0; member < choice.bundle.size(); ++member) {
    if (member != aligned && member != in_pairs && member != others) continue;
    ExplainedKernel kernel{
        .specialization = choice.bundle[member], .for_aligned = member == aligned, .for_others = member == others};
    Code::Result found = code.get(kernel.specialization, choice.arch, purpose);
    kernel.compiled = found.compiled;
    kernel.cubin = std::move(found.cubin);
    kernel.occupancy = facts_of(kernel.specialization, kernel.cubin, choice.arch).occupancy;
    kernel.blocks = blocks_of(kernel.specialization, result.rows);
    if (kernel.occupancy) {
      kernel.predicted =
          plan::predicted_share(result.problem, result.rows, kernel.specialization, *kernel.occupancy, choice.arch);
    }
    if (listings.ptx) kernel.ptx = code.compiler().ptx(jit::program(kernel.specialization, choice.arch));
    if (disassemble && kernel.cubin.kind == jit::PayloadKind::cubin) kernel.sass = (*disassemble)(kernel.cubin.payload);
    result.kernels.push_back(std::move(kernel));
  }
  result.choice = std::move(choice);
  return result;
}

}  // namespace jitsoftmax::tools
