// `jitsoftmax doctor`: what is found on this machine, where, and what to do about what is missing.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "commands.hpp"
#include "diagnosis.hpp"
#include "diagnosis_report.hpp"

namespace jitsoftmax::tools {
namespace {

struct DoctorRequest {
  std::optional<std::string> cache_dir;
  bool json = false;
};

int doctor(const DoctorRequest& request) {
  const Diagnosis found = diagnose(request.cache_dir);
  std::fputs((request.json ? to_json(found) : to_text(found)).c_str(), stdout);
  return exit_code_of(found);
}

}  // namespace

void add_doctor(CLI::App& program, Action& action) {
  const auto request = std::make_shared<DoctorRequest>();
  CLI::App& command = *program.add_subcommand(
      "doctor",
      "Say what is found on this machine, where, and what to do about what is missing. Exit code: 0 if kernels can be "
      "compiled or launched here, 3 if neither");
  command.add_option("--cache-dir", request->cache_dir, "Look at this directory instead of JITSOFTMAX_CACHE_DIR");
  command.add_flag("--json", request->json, "One JSON object instead of lines");
  command.callback([request, &action] { action = [request] { return doctor(*request); }; });
}

}  // namespace jitsoftmax::tools
