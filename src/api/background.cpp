#include "api/background.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace jitsoftmax {

struct Background::State {
  explicit State(int at_once) : most(static_cast<std::size_t>(std::max(at_once, 1))) {}

  const std::size_t most;
  const pid_t process = ::getpid();
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  std::vector<std::thread> workers;
  std::size_t idle = 0;

  [[nodiscard]] bool is_here() const noexcept { return process == ::getpid(); }

  bool accept(const Job& job) {
    if (!is_here()) return false;
    const std::lock_guard lock(mutex);
    if (stopping.load()) return false;
    if (idle <= jobs.size() && workers.size() < most) {
      try {
        workers.emplace_back([this] { work(); });
      } catch (const std::system_error&) {  // the process may have no more threads
        if (workers.empty()) return false;
      }
    }
    jobs.push_back(job);
    return true;
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      ++idle;
      changed.wait(lock, [this] { return stopping.load() || !jobs.empty(); });
      --idle;
      if (stopping.load()) return;
      Job job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      job(false);
      job = nullptr;  // what it holds goes without the lock
      lock.lock();
    }
  }
};

Background::Background(int workers) : state_(std::make_unique<State>(workers)) {}

Background::~Background() {
  stop();
  // In a forked child the threads are gone, but their handles, the lock and who waits are as they were:
  // none of that may be destroyed.
  if (!state_->is_here()) static_cast<void>(state_.release());
}

void Background::submit(const Job& job) {
  if (state_->accept(job)) {
    state_->changed.notify_one();
  } else {
    job(true);
  }
}

void Background::stop() noexcept {
  if (!state_->is_here()) return;
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping.store(true);
    dropped.swap(state_->jobs);
  }
  state_->changed.notify_all();
  for (const Job& job : dropped) job(true);
  for (std::thread& worker : state_->workers)
    if (worker.joinable()) worker.join();
}

bool Background::stopping() const noexcept { return state_->stopping.load(std::memory_order_relaxed); }

std::size_t Background::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->jobs.size();
}

}  // namespace jitsoftmax
