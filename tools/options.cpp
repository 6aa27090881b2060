#include "options.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <utility>

#include "logger.hpp"

namespace jitsoftmax::tools {

void EngineOptions::add_cache_to(CLI::App& command) {
  command.add_option("--cache-dir", cache_dir,
                     "Where compiled kernels are kept (default: JITSOFTMAX_CACHE_DIR, "
                     "$XDG_CACHE_HOME/jitsoftmax, ~/.cache/jitsoftmax); empty: nowhere");
}

void EngineOptions::add_to(CLI::App& command) {
  add_cache_to(command);
  const std::string group = "Kernel choice";
  command
      .add_option("--variant", variant.name,
                  "A kernel by name: safe3, v0 ... v4, generic (bench: also best, tuned, all, every)")
      ->group(group);
  command
      .add_option("--family", variant.family,
                  "safe, looped, registers, staged, split, counted, strided, strided_registers or strided_staged")
      ->group(group);
  command.add_option("--threads", variant.threads, "Threads a row")->group(group);
  command.add_option("--rows", variant.rows, "Rows a block")->group(group);
  command.add_option("--cluster", variant.cluster, "Blocks a row")->group(group);
  command.add_option("--vector", variant.vector, "Elements an access")->group(group);
  command.add_option("--elements", variant.elements, "Elements a thread holds at a time")->group(group);
  command
      .add_option("--pieces", variant.pieces,
                  "Asynchronous copies a block (staged), groups of 8 columns a thread (strided_staged)")
      ->group(group);
  command.add_option("--resident", variant.resident, "Blocks a multiprocessor that registers allow")->group(group);
  command.add_option("--packed", variant.packed, "Hold bits instead of numbers (registers)")->group(group);
  command.add_option("--low-latency", variant.low_latency, "For few rows: agree in less time (registers, in clusters)")
      ->group(group);
  command.add_option("--staggered", variant.staggered, "The first rows are read one after another (clusters)")
      ->group(group);
}

Options EngineOptions::options() const {
  Options result = Options::from_environment();
  if (cache_dir) result.cache_dir = cache_dir;
  result.variant = variant;
  result.log = library_log();
  return result;
}

std::vector<Arch> archs_named(const std::vector<std::string>& names) {
  std::vector<Arch> archs;
  archs.reserve(names.size());
  for (const std::string& name : names) archs.push_back(Arch::parse(name));
  return archs;
}

cache::StoreOptions store_options(const Options& options) {
  return {.layers = options.cache_layers,
          .directory = cache::resolve_directory(options.cache_dir),
          .log = options.log,
          .limit = options.cache_limit,
          .trusted = options.trusted_owners};
}

std::string describe_cache(const Options& options) {
  std::vector<std::string> directories = options.cache_layers;
  if (std::string directory = cache::resolve_directory(options.cache_dir); !directory.empty()) {
    directories.push_back(std::move(directory));
  }
  return directories.empty() ? "no cache directory" : fmt::format("{}", fmt::join(directories, ", "));
}

}  // namespace jitsoftmax::tools
