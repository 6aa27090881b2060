#include "host/ready_threads.hpp"

#include <utility>

namespace jitsoftmax::host_test {
namespace {

constexpr unsigned turns_of_a_warp = 64;  // on average, in threads

}  // namespace

void ReadyThreads::clear() {
  for (Warp& warp : warps_) {
    warp.threads.clear();
    warp.listed = false;
  }
  listed_.clear();
  current_ = none;
  count_ = 0;
}

void ReadyThreads::add(int thread) {
  const auto number = static_cast<std::size_t>(thread / kernels::warp_size);
  if (warps_.size() <= number) warps_.resize(number + 1);
  Warp& warp = warps_[number];
  warp.threads.push_back(thread);
  if (!warp.listed) listed_.push_back(number);
  warp.listed = true;
  ++count_;
}

int ReadyThreads::take(std::minstd_rand& order) {
  if (current_ != none && warps_[listed_[current_]].threads.empty()) {
    warps_[listed_[current_]].listed = false;
    listed_[current_] = listed_.back();
    listed_.pop_back();
    current_ = none;
  }
  if (current_ == none || order() % turns_of_a_warp == 0) current_ = order() % listed_.size();
  std::vector<int>& threads = warps_[listed_[current_]].threads;
  std::swap(threads[order() % threads.size()], threads.back());
  const int thread = threads.back();
  threads.pop_back();
  --count_;
  return thread;
}

}  // namespace jitsoftmax::host_test
