// HostExecutable: a problem on the CPU.
#pragma once

#include <jitsoftmax/engine.hpp>

#include "api/executable.hpp"

namespace jitsoftmax {

class HostExecutable final : public Executable {
 public:
  HostExecutable(const Problem& problem, MaskedRows masked) noexcept : problem_(problem), masked_(masked) {}

  void launch(const Rows& rows, Stream stream) const override;
  [[nodiscard]] std::vector<std::string> specializations() const override;
  [[nodiscard]] std::vector<Origin> origins() const override;
  [[nodiscard]] std::string specialization_for(const Rows& rows) const override;

 private:
  Problem problem_;
  MaskedRows masked_;
};

}  // namespace jitsoftmax
