#include <jitsoftmax/error.hpp>
#include <jitsoftmax/kernel.hpp>

#include "api/executable.hpp"

namespace jitsoftmax {

namespace {

const Executable& filled(const std::shared_ptr<const Executable>& executable) {
  if (executable == nullptr) {
    throw Error(ErrorCode::invalid_argument, "this Kernel is empty; take one from Engine::prepare");
  }
  return *executable;
}

}  // namespace

void Kernel::launch(const Rows& rows, Stream stream) const { filled(executable_).launch(rows, stream); }

std::vector<std::string> Kernel::specializations() const {
  return executable_ == nullptr ? std::vector<std::string>{} : executable_->specializations();
}

std::vector<Origin> Kernel::origins() const {
  return executable_ == nullptr ? std::vector<Origin>{} : executable_->origins();
}

std::string Kernel::specialization_for(const Rows& rows) const { return filled(executable_).specialization_for(rows); }

}  // namespace jitsoftmax
