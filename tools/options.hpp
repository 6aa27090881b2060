// Command-line options that become jitsoftmax::Options, shared by the subcommands.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <jitsoftmax/engine.hpp>
#include <optional>
#include <string>
#include <vector>

namespace jitsoftmax::tools {

struct EngineOptions {
  std::optional<std::string> cache_dir;
  Variant variant;

  void add_to(CLI::App& command);

  // The environment's options, overridden by these, reporting to the program's log.
  [[nodiscard]] Options options() const;
};

// What a subcommand does once it is chosen; returns the exit code.
using Action = std::function<int()>;

// Each adds its subcommand, which sets `action` when it is on the command line.
void add_bench(CLI::App& program, Action& action);
void add_run(CLI::App& program, Action& action);
void add_warmup(CLI::App& program, Action& action);

// The cache directories that kernels are looked for in, for people to read.
[[nodiscard]] std::string describe_cache(const Options& options);

}  // namespace jitsoftmax::tools
