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

  // Whether all that was launched has ended. Said without waiting, and only by what was made to know it.
  [[nodiscard]] virtual bool idle() const noexcept { return true; }
  // Whether it must not be unloaded, however idle, while there is an engine: a graph may have it.
  [[nodiscard]] virtual bool stays() const noexcept { return false; }
};

}  // namespace jitsoftmax
