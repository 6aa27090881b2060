// DeviceWorkshop: what tuning needs done, with the compiler, the cache and a GPU.
#pragma once

#include <cstddef>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/kernel.hpp>
#include <mutex>
#include <string>
#include <vector>

#include "api/code.hpp"
#include "jit/cubin.hpp"
#include "plan/choice.hpp"
#include "plan/specialization.hpp"
#include "tune/buffers.hpp"
#include "tune/fit.hpp"
#include "tune/tuner.hpp"

namespace jitsoftmax {

// The context whose device it is for is current on the thread that tunes; build() needs none.
class DeviceWorkshop final : public tune::Workshop {
 public:
  // `candidates`: with their alignment left open. `jobs`: threads that build. `seconds`: that one measurement
  // lasts at least. `log` hears of wrong results.
  DeviceWorkshop(Code& code, const Problem& problem, const std::vector<plan::Specialization>& candidates, int jobs,
                 const Arch& arch, const tune::DeviceLimits& limits, MaskedRows masked, tune::RotatedBuffers buffers,
                 double seconds, Log log);

  std::string build(std::size_t candidate, tune::Part part) override;
  std::string check(std::size_t candidate, tune::Part part) override;
  std::vector<tune::Timing> time(const std::vector<std::size_t>& candidates, int rounds) override;

 private:
  struct Candidate {
    plan::Bundle bundle;              // one kernel for each alignment of rows
    std::size_t timed;                // the one of them that rows in the buffers run
    std::vector<Code::Result> codes;  // of the part that was built last
    Kernel kernel;                    // of the trial

    // In the order of their codes.
    [[nodiscard]] plan::Bundle members(tune::Part part) const;
  };

  // Candidates whose trials are one program: a compile of several kernels takes less than one of each, above all
  // of what NVRTC lets one thread at a time do.
  struct Group {
    std::vector<std::size_t> candidates;
    std::once_flag compiled;
  };
  void compile_trials(const Group& group);

  [[nodiscard]] Kernel load_kernel(const plan::Specialization& member, Code::Result code);

  Code& code_;
  Problem problem_;
  Arch arch_;
  tune::DeviceLimits limits_;
  MaskedRows masked_;
  tune::RotatedBuffers buffers_;
  double seconds_;
  Log log_;
  std::vector<Candidate> candidates_;  // each is touched by one thread at a time
  std::vector<Group> groups_;          // candidate i is in group i modulo their number, so that neighbours do not wait
};

}  // namespace jitsoftmax
