// The subcommands of the program, one file each.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace jitsoftmax::tools {

// What a subcommand does once it is chosen; returns the exit code.
using Action = std::function<int()>;

// Each adds its subcommand, which sets `action` when it is on the command line.
void add_autotune(CLI::App& program, Action& action);
void add_bench(CLI::App& program, Action& action);
void add_doctor(CLI::App& program, Action& action);
void add_explain(CLI::App& program, Action& action);
void add_cache(CLI::App& program, Action& action);
void add_run(CLI::App& program, Action& action);
void add_warmup(CLI::App& program, Action& action);

}  // namespace jitsoftmax::tools
