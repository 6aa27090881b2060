// Executable: what a Kernel holds. One implementation a kind of device.
#pragma once

#include <jitsoftmax/kernel.hpp>
#include <string>
#include <vector>

namespace jitsoftmax {

class Executable {
 public:
  virtual ~Executable() = default;

  // As Kernel::launch.
  virtual void launch(const Rows& rows, Stream stream) const = 0;
  [[nodiscard]] virtual std::vector<std::string> specializations() const = 0;
  [[nodiscard]] virtual std::vector<Origin> origins() const = 0;
  [[nodiscard]] virtual std::string specialization_for(const Rows& rows) const = 0;
};

}  // namespace jitsoftmax
