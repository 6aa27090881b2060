// CudaExecutable: the loaded bundle of a problem on one GPU.
#pragma once

#include <cuda.h>

#include <jitsoftmax/engine.hpp>
#include <memory>
#include <vector>

#include "api/executable.hpp"
#include "cuda/device.hpp"
#include "cuda/in_flight.hpp"
#include "cuda/module.hpp"
#include "cuda/workspaces.hpp"
#include "plan/choice.hpp"

namespace jitsoftmax {

// The code of a specialization, on the device whose context is current.
[[nodiscard]] cuda::LoadedKernel load(const plan::Specialization& specialization, const jit::Cubin& cubin);

class CudaExecutable final : public Executable {
 public:
  // `kernels[i]` is the code of `bundle[i]`. `context`: made current for a launch; null: the caller's.
  // `programmatic`: as Options::programmatic_launch, on a GPU that knows it.
  CudaExecutable(const Problem& problem, MaskedRows masked, bool programmatic, plan::Bundle bundle,
                 std::vector<cuda::LoadedKernel> kernels, std::shared_ptr<const cuda::PrimaryContext> context);

  // The code of a kernel with Runtime columns, for a problem that differs in its columns only. It takes
  // no workspace.
  CudaExecutable(const CudaExecutable& generic, const Problem& problem);

  // Before the first launch: from then on idle() says whether there is one on the device.
  void follow_launches() { in_flight_ = std::make_unique<cuda::InFlight>(); }

  void launch(const Rows& rows, Stream stream) const override;
  [[nodiscard]] std::vector<std::string> specializations() const override;
  [[nodiscard]] std::vector<Origin> origins() const override;
  [[nodiscard]] std::string specialization_for(const Rows& rows) const override;
  [[nodiscard]] bool idle() const noexcept override { return in_flight_ != nullptr && in_flight_->idle(); }
  [[nodiscard]] bool stays() const noexcept override { return in_flight_ == nullptr || in_flight_->endless(); }

 private:
  // By kernel `chosen`, as many rows as one launch takes.
  void launch_at_once(std::size_t chosen, const Rows& rows, Stream stream) const;

  Problem problem_;
  MaskedRows masked_;
  bool programmatic_;
  plan::Bundle bundle_;
  // Released before the context that holds their code.
  std::shared_ptr<const cuda::PrimaryContext> context_;
  std::shared_ptr<const std::vector<cuda::LoadedKernel>> kernels_;  // one each; shared by all lengths of a generic one
  std::vector<std::unique_ptr<cuda::Workspaces>> workspaces_;       // of each kernel; null where it takes none
  std::unique_ptr<cuda::InFlight> in_flight_;                       // null: not followed
};

}  // namespace jitsoftmax
