#include "api/device_workshop.hpp"

#include <memory>
#include <utility>

#include "api/cuda_executable.hpp"
#include "api/load_or_replace.hpp"
#include "base/log.hpp"
#include "plan/launch.hpp"
#include "tune/timer.hpp"

namespace jitsoftmax {
DeviceWorkshop::DeviceWorkshop(Code& code, const Problem& problem, const std::vector<plan::Specialization>& candidates,
                               const Arch& arch, const tune::DeviceLimits& limits, MaskedRows masked,
                               tune::RotatedBuffers buffers, double seconds, Log log)
    : code_(code),
      problem_(problem),
      arch_(arch),
      limits_(limits),
      masked_(masked),
      buffers_(std::move(buffers)),
      seconds_(seconds),
      log_(std::move(log)) {
  for (const plan::Specialization& candidate : candidates) {
    plan::Bundle bundle = plan::bundle_of(candidate, false);
    const std::size_t timed = plan::select(bundle, plan::check(problem_, buffers_.rows(0)));
    candidates_.push_back({std::move(bundle), timed, {}, {}});
  }
}

std::string DeviceWorkshop::build(std::size_t candidate) {
  Candidate& c = candidates_[candidate];
  for (const plan::Specialization& member : c.bundle) {
    Code::Result code = code_.get(member, arch_, Code::Purpose::tuning);
    if (std::string reason = tune::unfit(member, code.cubin.resources, limits_); !reason.empty()) return reason;
    c.codes.push_back(std::move(code));
  }
  return {};
}

std::string DeviceWorkshop::check(std::size_t candidate) {
  Candidate& c = candidates_[candidate];
  for (std::size_t i = 0; i < c.bundle.size(); ++i) {
    const Kernel kernel = load_kernel(c.bundle[i], std::move(c.codes[i]));
    const tune::Verdict verdict =
        buffers_.verify_sample([&](const Rows& rows) { kernel.launch(rows, nullptr); }, masked_);
    if (verdict.wrong != 0) {
      std::string reason = "is wrong in " + std::to_string(verdict.wrong) + " of " + std::to_string(verdict.elements) +
                           " elements, the worst by " + std::to_string(verdict.ratio) + " times what is allowed";
      base::report(
          log_, LogLevel::warning,
          "jitsoftmax: " + plan::name_expression(c.bundle[i]) + " " + reason + "; it is not used: please report this");
      return reason;
    }
    if (i == c.timed) c.kernel = kernel;
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
