#include "api/cuda_executable.hpp"

#include <utility>

#include "plan/launch.hpp"

namespace jitsoftmax {

cuda::LoadedKernel load(const plan::Specialization& specialization, const jit::Cubin& cubin) {
  const plan::Geometry shape = plan::geometry(specialization, Rows{.count = 1}, 1);
  return {cubin, cuda::LaunchShape{.cluster = shape.cluster, .block = shape.block, .shared = shape.shared}};
}

CudaExecutable::CudaExecutable(const Problem& problem, MaskedRows masked, bool programmatic, plan::Bundle bundle,
                               std::vector<cuda::LoadedKernel> kernels,
                               std::shared_ptr<const cuda::PrimaryContext> context)
    : problem_(problem),
      masked_(masked),
      programmatic_(programmatic),
      bundle_(std::move(bundle)),
      context_(std::move(context)),
      kernels_(std::make_shared<const std::vector<cuda::LoadedKernel>>(std::move(kernels))) {
  for (std::size_t i = 0; i < bundle_.size(); ++i) {
    const std::size_t bytes = plan::workspace_bytes(bundle_[i], (*kernels_)[i].resident_blocks());
    workspaces_.push_back(bytes != 0 ? std::make_unique<cuda::Workspaces>(bytes) : nullptr);
  }
}

CudaExecutable::CudaExecutable(const CudaExecutable& generic, const Problem& problem)
    : problem_(problem),
      masked_(generic.masked_),
      programmatic_(generic.programmatic_),
      bundle_(generic.bundle_),
      context_(generic.context_),
      kernels_(generic.kernels_),
      workspaces_(bundle_.size()) {}

void CudaExecutable::launch(const Rows& rows, Stream stream) const {
  const Rows checked = plan::check(problem_, rows);
  if (problem_.cols == 0 || checked.count == 0) return;

  const cuda::ContextScope scope(context_ ? context_->context() : nullptr);
  const std::size_t chosen = plan::select(bundle_, checked);
  for (Rows rest = checked; rest.count != 0;) {
    launch_at_once(chosen, plan::take_rows_of_launch(bundle_[chosen], problem_, rest), stream);
  }
  if (in_flight_) in_flight_->launched(stream);
}

void CudaExecutable::launch_at_once(std::size_t chosen, const Rows& rows, Stream stream) const {
  const cuda::LoadedKernel& kernel = (*kernels_)[chosen];
  const plan::Geometry shape =
      plan::geometry(bundle_[chosen], rows, kernel.resident_blocks(), kernel.resident_clusters());
  void* const workspace = workspaces_[chosen] != nullptr ? workspaces_[chosen]->for_launch(stream) : nullptr;
  kernels::Arguments arguments = plan::arguments(problem_, rows, masked_, shape, workspace);
  const bool cooperative = shape.gang > 1;
  const bool programmatic = programmatic_ && !cooperative;  // the driver takes one of them
  arguments.programmatic = programmatic ? 1 : 0;
  cuda::launch(kernel.function(),
               {.grid = shape.grid,
                .cluster = shape.cluster,
                .block = shape.block,
                .shared = shape.shared,
                .cooperative = cooperative,
                // Faster where no block waits for another to end, slower where they take turns.
                .balanced = shape.at_once >= (programmatic ? 2U : 1U),
                .programmatic = programmatic},
               stream, &arguments);
}

std::vector<std::string> CudaExecutable::specializations() const {
  std::vector<std::string> names;
  names.reserve(bundle_.size());
  for (const plan::Specialization& specialization : bundle_) names.push_back(plan::name_expression(specialization));
  return names;
}

std::vector<Origin> CudaExecutable::origins() const {
  std::vector<Origin> origins;
  origins.reserve(bundle_.size());
  for (const plan::Specialization& specialization : bundle_) origins.push_back(specialization.origin);
  return origins;
}

std::string CudaExecutable::specialization_for(const Rows& rows) const {
  return plan::name_expression(bundle_[plan::select(bundle_, plan::check(problem_, rows))]);
}

}  // namespace jitsoftmax
