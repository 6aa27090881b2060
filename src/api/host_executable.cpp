#include "api/host_executable.hpp"

#include "host/softmax.hpp"
#include "plan/launch.hpp"

namespace jitsoftmax {

void HostExecutable::launch(const Rows& rows, Stream) const {
  const Rows checked = plan::check(problem_, rows);
  if (problem_.cols != 0 && checked.count != 0) host::softmax(problem_, checked, masked_);
}

std::vector<std::string> HostExecutable::specializations() const { return {"host"}; }

std::vector<Origin> HostExecutable::origins() const { return {Origin::built_in}; }

std::string HostExecutable::specialization_for(const Rows& rows) const {
  (void)plan::check(problem_, rows);
  return "host";
}

}  // namespace jitsoftmax
