#include "api/device_workshop.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "api/cuda_executable.hpp"
#include "api/load_or_replace.hpp"
#include "base/log.hpp"
#include "plan/launch.hpp"
#include "tune/timer.hpp"

namespace jitsoftmax {
namespace {

// More save little, and the first result is waited for longer.
constexpr std::size_t most_in_a_group = 4;

}  // namespace

DeviceWorkshop::DeviceWorkshop(Code& code, const Problem& problem, const std::vector<plan::Specialization>& candidates,
                               int jobs, const Arch& arch, const tune::DeviceLimits& limits, MaskedRows masked,
                               tune::RotatedBuffers buffers, double seconds, Log log)
    : code_(code),
      problem_(problem),
      arch_(arch),
      limits_(limits),
      masked_(masked),
      buffers_(std::move(buffers)),
      seconds_(seconds),
      log_(std::move(log)),
      groups_(std::max((candidates.size() + most_in_a_group - 1) / most_in_a_group,
                       std::min(candidates.size(), static_cast<std::size_t>(std::max(jobs, 1))))) {
  for (const plan::Specialization& candidate : candidates) {
    plan::Bundle bundle = plan::bundle_of(candidate, false);
    const std::size_t timed = plan::select(bundle, plan::check(problem_, buffers_.rows(0)));
    groups_[candidates_.size() % groups_.size()].candidates.push_back(candidates_.size());
    candidates_.push_back({std::move(bundle), timed, {}, {}});
  }
}

plan::Bundle DeviceWorkshop::Candidate::members(tune::Part part) const {
  return part == tune::Part::trial ? plan::Bundle{bundle[timed]} : bundle;
}

std::string DeviceWorkshop::build(std::size_t candidate, tune::Part part) {
  Candidate& c = candidates_[candidate];
  const plan::Bundle members = c.members(part);
  if (part == tune::Part::trial) {
    Group& group = groups_[candidate % groups_.size()];
    std::call_once(group.compiled, [&] { compile_trials(group); });
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == c.codes.size()) c.codes.push_back(code_.get(members[i], arch_, Code::Purpose::tuning));
    if (std::string reason = tune::unfit(members[i], c.codes[i].cubin.resources, limits_); !reason.empty())
      return reason;
  }
  return {};
}

// If one of them is refused, all are left to be compiled by themselves.
void DeviceWorkshop::compile_trials(const Group& group) {
  if (group.candidates.size() == 1) return;
  std::vector<plan::Specialization> trials;
  for (const std::size_t candidate : group.candidates)
    trials.push_back(candidates_[candidate].members(tune::Part::trial).front());
  try {
    std::vector<Code::Result> codes = code_.compile_together(trials, arch_);
    for (std::size_t i = 0; i < codes.size(); ++i)
      candidates_[group.candidates[i]].codes.push_back(std::move(codes[i]));
  } catch (const Error& error) {
    base::report(log_, LogLevel::debug,
                 "several kernels as one program could not be compiled: " + std::string(error.what()));
  }
}

std::string DeviceWorkshop::check(std::size_t candidate, tune::Part part) {
  Candidate& c = candidates_[candidate];
  const plan::Bundle members = c.members(part);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Kernel kernel = load_kernel(members[i], std::move(c.codes[i]));
    const tune::Verdict verdict =
        buffers_.verify_sample([&](const Rows& rows) { kernel.launch(rows, nullptr); }, masked_);
    if (verdict.wrong != 0) {
      std::string reason = "is wrong in " + std::to_string(verdict.wrong) + " of " + std::to_string(verdict.elements) +
                           " elements, the worst by " + std::to_string(verdict.ratio) + " times what is allowed";
      base::report(
          log_, LogLevel::warning,
          "jitsoftmax: " + plan::name_expression(members[i]) + " " + reason + "; it is not used: please report this");
      return reason;
    }
    if (part == tune::Part::trial) c.kernel = kernel;
  }
  c.codes.clear();
  return {};
}

Kernel DeviceWorkshop::load_kernel(const plan::Specialization& member, Code::Result code) {
  std::vector<cuda::LoadedKernel> kernels;
  kernels.push_back(load_or_replace(code_, std::move(code), member, arch_, Code::Purpose::tuning,
                                    [&](const jit::Cubin& cubin) { return load(member, cubin); }));
  constexpr bool programmatic = false;  // what is timed begins when the last one has ended
  return Kernel(std::make_shared<const CudaExecutable>(problem_, masked_, programmatic, plan::Bundle{member},
                                                       std::move(kernels), nullptr));
}

std::vector<tune::Timing> DeviceWorkshop::time(const std::vector<std::size_t>& candidates, int rounds) {
  std::vector<tune::Enqueue> enqueues;
  enqueues.reserve(candidates.size());
  for (const std::size_t candidate : candidates) {
    enqueues.emplace_back([this, &kernel = candidates_[candidate].kernel](int set, CUstream stream) {
      kernel.launch(buffers_.rows(set), stream);
    });
  }
  return tune::time_interleaved(enqueues, {.sets = buffers_.sets(), .rounds = rounds, .seconds = seconds_});
}

}  // namespace jitsoftmax
