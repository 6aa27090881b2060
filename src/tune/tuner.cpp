#include "tune/tuner.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

namespace jitsoftmax::tune {
namespace {

bool concerns_all(ErrorCode code) noexcept {
  return code == ErrorCode::no_compiler || code == ErrorCode::no_driver || code == ErrorCode::no_context ||
         code == ErrorCode::io_error || code == ErrorCode::capturing;
}

// A candidate that is built, or was dropped on the way.
struct Built {
  std::size_t candidate = 0;
  std::optional<Dropped> dropped;
};

// Runs one step of a candidate; what is wrong with it becomes a value.
template <class Step>
Built attempt(std::size_t candidate, Step&& step) {
  try {
    std::string rejected = step();
    if (rejected.empty()) return {candidate, std::nullopt};
    return {candidate, Dropped{candidate, std::move(rejected), true}};
  } catch (const Error& error) {
    if (concerns_all(error.code())) throw;
    return {candidate, Dropped{candidate, error.what(), false}};
  }
}

// Runs a step of a candidate that was built; what is wrong with it becomes a value.
Built checked(Workshop& workshop, Built built, Part part) {
  if (built.dropped) return built;
  return attempt(built.candidate, [&] { return workshop.check(built.candidate, part); });
}

// The threads that build a part of some candidates. They stop, after what they are at, when it is destroyed.
class Builders {
 public:
  Builders(Workshop& workshop, std::vector<std::size_t> candidates, Part part, int jobs)
      : workshop_(workshop), candidates_(std::move(candidates)), part_(part) {
    const std::size_t threads = std::min(candidates_.size(), static_cast<std::size_t>(std::max(jobs, 1)));
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Builders() { stop_.store(true); }
  Builders(const Builders&) = delete;
  Builders& operator=(const Builders&) = delete;

  // Waits for the next ones, in the order of their numbers, and for the first before any other; empty: there
  // are no more.
  std::vector<Built> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_ || taken_ == candidates_.size() || (first_built_ && !ready_.empty()); });
    if (failure_) std::rethrow_exception(failure_);
    std::vector<Built> result = std::exchange(ready_, {});
    taken_ += result.size();
    std::sort(result.begin(), result.end(), [](const Built& a, const Built& b) { return a.candidate < b.candidate; });
    return result;
  }

 private:
  void work() {
    while (!stop_.load()) {
      const std::size_t next = next_.fetch_add(1);
      if (next >= candidates_.size()) return;
      try {
        Built built = attempt(candidates_[next], [&] { return workshop_.build(candidates_[next], part_); });
        const std::lock_guard lock(mutex_);
        ready_.push_back(std::move(built));
        first_built_ = first_built_ || next == 0;
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        stop_.store(true);
      }
      changed_.notify_one();
    }
  }

  Workshop& workshop_;
  const std::vector<std::size_t> candidates_;
  const Part part_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Built> ready_;
  std::size_t taken_ = 0;
  bool first_built_ = false;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

// Finalists become whole, or are dropped.
void complete(Workshop& workshop, Findings& findings, int jobs) {
  std::vector<std::size_t> finalists;
  for (const Ranked& ranked : findings.ranking)
    if (ranked.finalist) finalists.push_back(ranked.candidate);
  Builders builders(workshop, std::move(finalists), Part::whole, jobs);
  for (std::vector<Built> batch = builders.take(); !batch.empty(); batch = builders.take()) {
    for (Built& each : batch) {
      Built built = checked(workshop, std::move(each), Part::whole);
      if (!built.dropped) continue;
      std::erase_if(findings.ranking, [&](const Ranked& ranked) { return ranked.candidate == built.candidate; });
      findings.dropped.push_back(std::move(*built.dropped));
    }
  }
}

}  // namespace

Findings rank(Workshop& workshop, std::size_t count, const TunerOptions& options) {
  Findings result;
  Search search([&](const std::vector<std::size_t>& which, int rounds) { return workshop.time(which, rounds); },
                options.search);
  std::vector<std::size_t> waiting;  // for the first rounds
  bool begun = false;
  std::size_t done = 0;
  {
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    Builders builders(workshop, std::move(all), Part::trial, options.jobs);
    for (std::vector<Built> batch = builders.take(); !batch.empty(); batch = builders.take()) {
      for (Built& each : batch) {
        Built built = checked(workshop, std::move(each), Part::trial);
        if (built.dropped) {
          result.dropped.push_back(std::move(*built.dropped));
        } else {
          waiting.push_back(built.candidate);
        }
        if (options.progress && !options.progress(built.candidate, ++done)) {
          result.stopped = true;
          return result;
        }
      }
      // One alone has nobody to be compared with.
      if (waiting.size() < 2 && !begun) continue;
      search.add(std::exchange(waiting, {}));
      begun = true;
    }
  }
  const bool only_the_anchor = !begun && waiting == std::vector<std::size_t>{0};
  if (!(only_the_anchor && options.anchor_known)) {
    search.add(waiting);
    result.ranking = search.finish();
    complete(workshop, result, options.jobs);
  }
  const bool one_may_win =
      std::any_of(result.ranking.begin(), result.ranking.end(), [](const Ranked& ranked) { return ranked.finalist; });
  if (!one_may_win && !only_the_anchor && !result.dropped.empty()) {
    const Dropped& first = result.dropped.front();
    throw Error(first.for_good ? ErrorCode::internal : ErrorCode::driver_error,
                "none of " + std::to_string(count) + " candidates can be used; the first of them: " + first.why);
  }
  return result;
}

}  // namespace jitsoftmax::tune
