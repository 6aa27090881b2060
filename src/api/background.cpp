#include "api/background.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace jitsoftmax {

namespace {

void stop_all() noexcept;

// NVRTC and the driver have exit handlers, after which a worker must not be in them, and these run before a static
// engine of the program is destroyed. So workers are stopped by a handler that is registered later than theirs,
// and therefore runs earlier: when the first worker starts, and again when one has been in both libraries.
void stop_workers_before_libraries_exit(std::atomic<bool>& registered) noexcept {
  if (!registered.exchange(true)) std::atexit(stop_all);
}
constinit std::atomic<bool> registered_at_start{false};
constinit std::atomic<bool> registered_after_a_job{false};

}  // namespace

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
  State* next = nullptr;  // of all in this process

  [[nodiscard]] bool is_here() const noexcept { return process == ::getpid(); }

  bool accept(const Job& job) {
    if (!is_here()) return false;
    const std::lock_guard lock(mutex);
    if (stopping.load()) return false;
    if (idle <= jobs.size() && workers.size() < most) {
      stop_workers_before_libraries_exit(registered_at_start);
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
      stop_workers_before_libraries_exit(registered_after_a_job);
      lock.lock();
    }
  }

  void stop() noexcept {
    if (!is_here()) return;
    std::deque<Job> dropped;
    {
      const std::lock_guard lock(mutex);
      stopping.store(true);
      dropped.swap(jobs);
    }
    changed.notify_all();
    for (const Job& job : dropped) job(true);
    for (std::thread& worker : workers)
      if (worker.joinable()) worker.join();
  }

  // All that live, for the end of the process. No destructor of its own runs then.
  struct All {
    std::mutex mutex;
    State* first = nullptr;
  };
  static All all;
};
constinit Background::State::All Background::State::all;

namespace {

void stop_all() noexcept { Background::stop_all(); }

}  // namespace

void Background::stop_all() noexcept {
  State::All& all = State::all;
  // In a forked child a thread that is not there may have had the lock.
  if (all.first == nullptr || !all.first->is_here()) return;
  const std::lock_guard lock(all.mutex);
  for (State* state = all.first; state != nullptr; state = state->next) state->stop();
}

Background::Background(int workers) : state_(std::make_unique<State>(workers)) {
  const std::lock_guard lock(State::all.mutex);
  state_->next = std::exchange(State::all.first, state_.get());
}

Background::~Background() {
  stop();
  if (state_->is_here()) {
    const std::lock_guard lock(State::all.mutex);
    State** link = &State::all.first;
    while (*link != state_.get()) link = &(*link)->next;
    *link = state_->next;
  }
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

void Background::stop() noexcept { state_->stop(); }

bool Background::stopping() const noexcept { return state_->stopping.load(std::memory_order_relaxed); }

std::size_t Background::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->jobs.size();
}

}  // namespace jitsoftmax
