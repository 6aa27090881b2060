// The jitsoftmax program: reads the command line, runs one subcommand, reports its errors.
#include <jitsoftmax/version.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <jitsoftmax/error.hpp>
#include <new>
#include <string>

#include "commands.hpp"
#include "exit_code.hpp"
#include "interrupt.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;

constexpr const char* examples = R"(Examples:
  jitsoftmax run x.npy -o y.npy                   softmax along the last axis, on a GPU if there is one
  jitsoftmax run x.npy -o y.npy --axis 1 --verify
  jitsoftmax run x.npy -o y.npy --op log_softmax --scale 0.125 --device host
  jitsoftmax warmup --shapes shapes.txt --arch sm_80,sm_90     fills the cache; needs no GPU
  jitsoftmax autotune --shapes shapes.txt         finds the fastest kernels for this GPU
  jitsoftmax doctor                               what is found here, and what to do about what is missing
  jitsoftmax explain 4096 f32                     which kernel that is, and what it takes
  jitsoftmax cache list                           the kernels in the cache

Exit codes: 0 done, 1 some items failed, 2 usage, 3 no NVRTC, 4 cache unusable, 5 no GPU, 6 wrong result or too slow.)";

int fail(int code, const char* message) {
  std::fprintf(stderr, "jitsoftmax: error: %s\n", message);
  return code;
}

int run_command_line(int argc, char** argv) {
  CLI::App program("Row softmax on NVIDIA GPUs, compiled at run time for the row length and type at hand",
                   "jitsoftmax");
  program.set_version_flag("--version", "jitsoftmax " JITSOFTMAX_VERSION);
  program.footer(examples);
  program.require_subcommand(1);
  Action action;
  add_run(program, action);
  add_warmup(program, action);
  add_autotune(program, action);
  add_bench(program, action);
  add_doctor(program, action);
  add_explain(program, action);
  add_cache(program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
    return fail(exit_code::usage, (std::string(error.what()) + " (jitsoftmax --help shows the usage)").c_str());
  }
  return action();
}

int run_and_report(int argc, char** argv) {
  try {
    return run_command_line(argc, argv);
  } catch (const Failure& failure) {
    return fail(failure.exit_code(), failure.what());
  } catch (const Error& error) {
    return fail(exit_code_of(error.code()), error.what());
  } catch (const Interrupted& interrupted) {
    std::fputs("jitsoftmax: interrupted\n", stderr);
    return exit_code::signalled + interrupted.signal;
  } catch (const std::bad_alloc&) {
    return fail(exit_code::incomplete, "out of memory: give it less at once, or a larger machine");
  } catch (const std::exception& error) {
    return fail(exit_code::incomplete, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A write beyond the file size limit becomes an error that can be reported and cleaned up after.
  std::signal(SIGXFSZ, SIG_IGN);
  const int code = run_and_report(argc, argv);
  std::cout.flush();
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) && code == exit_code::done) {
    return fail(exit_code::incomplete, "the results could not be written to standard output");
  }
  return code;
}
