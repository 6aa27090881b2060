#include "api/host_executable.hpp"

#include "host/softmax.hpp"
#include "plan/launch.hpp"

namespace jitsoftmax {

void HostExecutable::launch(const Rows& rows, Stream) const {
  const Rows checked = plan::check(problem_, rows);
  if (problem_.cols != 0 && checked.count != 0) host::softmax(problem_, checked, masked_);
}

std::vector<std::string> HostExecutable::specializations() const { return {"host"}; }

}  // namespace jitsoftmax
