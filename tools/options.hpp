// Command-line options that become jitsoftmax::Options, shared by the subcommands.
#pragma once

#include <CLI/CLI.hpp>
#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cache/store.hpp"

namespace jitsoftmax::tools {

struct EngineOptions {
  std::optional<std::string> cache_dir;
  Variant variant;

  void add_to(CLI::App& command);
  void add_cache_to(CLI::App& command);  // only where the cache is

  // The environment's options, overridden by these, reporting to the program's log.
  [[nodiscard]] Options options() const;
};

// Throws invalid_argument, as Arch::parse.
[[nodiscard]] std::vector<Arch> archs_named(const std::vector<std::string>& names);

// The cache that an engine with these options has, for reading.
[[nodiscard]] cache::StoreOptions store_options(const Options& options);

// The cache directories that kernels are looked for in, for people to read.
[[nodiscard]] std::string describe_cache(const Options& options);

}  // namespace jitsoftmax::tools
