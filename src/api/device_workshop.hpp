// DeviceWorkshop: what tuning needs done, with the compiler, the cache and a GPU.
#pragma once

#include <cstddef>
#include <jitsoftmax/engine.hpp>
#include <jitsoftmax/kernel.hpp>
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
  // `candidates`: with their alignment left open. `seconds`: that one measurement lasts at least. `log`
  // hears of wrong results.
  DeviceWorkshop(Code& code, const Problem& problem, const std::vector<plan::Specialization>& candidates,
                 const Arch& arch, const tune::DeviceLimits& limits, MaskedRows masked, tune::RotatedBuffers buffers,
                 double seconds, Log log);

  std::string build(std::size_t candidate, tune::Part part) override;
  std::string check(std::size_t candidate, tune::Part part) override;
  std::vector<tune::Timing> time(const std::vector<std::size_t>& candidates, int rounds) override;

 private:
  struct Candidate {
    plan::Bundle bundle;              // one kernel for each alignment of rows
    std::size_t timed;                // the one of them that rows in the buffers run
    std::vector<Code::Result> codes;  // of the part that was built last, in the order of the bundle
    Kernel kernel;

    // Which of the bundle.
    [[nodiscard]] std::vector<plan::Specialization> members(tune::Part part) const;
  };

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
};

}  // namespace jitsoftmax
