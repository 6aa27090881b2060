#include <jitsoftmax/error.hpp>
#include <jitsoftmax/kernel.hpp>

#include "api/executable.hpp"

namespace jitsoftmax {

void Kernel::launch(const Rows& rows, Stream stream) const {
  if (executable_ == nullptr) {
    throw Error(ErrorCode::invalid_argument, "this Kernel is empty; take one from Engine::prepare");
  }
  executable_->launch(rows, stream);
}

std::vector<std::string> Kernel::specializations() const {
  return executable_ == nullptr ? std::vector<std::string>{} : executable_->specializations();
}

}  // namespace jitsoftmax
