#include "host/thread_copies.hpp"

#include <algorithm>
#include <utility>

namespace jitsoftmax::host_test {
namespace {

using kernels::copy_bytes;
constexpr int nobody = -1;

std::size_t slot(int offset) { return static_cast<std::size_t>(offset / copy_bytes); }

}  // namespace

void ThreadCopies::reset(int threads, int shared_bytes) {
  threads_.assign(static_cast<std::size_t>(threads), {});
  brought_by_.assign(slot(shared_bytes) + 1, nobody);
}

std::optional<std::string> ThreadCopies::start(const Moment& now, int to, const void* from) {
  if (auto why = withhold(now, to, copy_bytes)) return why;
  if (auto why = shared_.may_store(now, to, copy_bytes, copy_bytes)) return why;
  OfThread& mine = of(now.thread);
  mine.under_way.push_back({to, from, mine.closed});
  brought_by_[slot(to)] = now.thread;
  return std::nullopt;
}

std::optional<std::string> ThreadCopies::wait(const Moment& now, int newest) {
  OfThread& mine = of(now.thread);
  std::vector<Copy> still;
  for (const Copy& copy : mine.under_way) {
    if (copy.group >= mine.closed - newest) {
      still.push_back(copy);
      continue;
    }
    if (auto why = shared_.store(now, copy.to, copy.from, copy_bytes, copy_bytes)) return why;
    brought_by_[slot(copy.to)] = nobody;
  }
  mine.under_way = std::move(still);
  return std::nullopt;
}

std::optional<std::string> ThreadCopies::withhold(const Moment& now, int offset, int bytes) const {
  if (offset < 0) return std::nullopt;  // refused as such
  for (std::size_t at = slot(offset); at < std::min(slot(offset + bytes - 1) + 1, brought_by_.size()); ++at) {
    if (brought_by_[at] == nobody) continue;
    Moment other = now;
    other.thread = brought_by_[at];
    return "touches byte " + std::to_string(std::max(offset, static_cast<int>(at) * copy_bytes)) +
           " of shared memory, which a copy of " + name_for(now, other) + " brings that it has not waited for";
  }
  return std::nullopt;
}

std::optional<std::string> ThreadCopies::left_behind(int thread) const {
  if (threads_[static_cast<std::size_t>(thread)].under_way.empty()) return std::nullopt;
  return "ends with copies under way that it has not waited for";
}

}  // namespace jitsoftmax::host_test
