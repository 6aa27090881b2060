// SingleFlight: work that several threads ask for at once is done once.
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace jitsoftmax::cache {

// Threads: run() may be called from any number of threads at once. Different keys run in parallel;
// no lock is held while `make` runs.
template <class Key, class Value, class Hash = std::hash<Key>>
class SingleFlight {
 public:
  // make()'s result, for this caller and for all who ask for `key` while it runs: they wait, and
  // share the value or the exception. Nothing is remembered afterwards, so that a failure is tried
  // again by the next caller. A caller that keeps results must therefore look for one in `make`
  // again: another flight may have landed since it looked. `make` must not ask for its own key.
  template <class Make>
  Value run(const Key& key, Make&& make) {
    std::promise<Value> promise;
    const Flight own = promise.get_future().share();
    const Flight flight = join(key, own);
    if (flight.valid()) return flight.get();

    std::optional<Value> value;
    std::exception_ptr failure;
    try {
      value.emplace(std::invoke(std::forward<Make>(make)));
    } catch (...) {
      failure = std::current_exception();
    }
    // Forgotten first: whoever has seen the failure and asks again must not get it a second time.
    forget(key);
    if (failure) {
      promise.set_exception(std::move(failure));
    } else {
      promise.set_value(std::move(*value));
    }
    return own.get();
  }

 private:
  using Flight = std::shared_future<Value>;

  // The flight that is under way; none if there was none: `own` is it now.
  Flight join(const Key& key, const Flight& own) {
    const std::lock_guard lock(mutex_);
    const auto [entry, first] = flights_.try_emplace(key, own);
    return first ? Flight{} : entry->second;
  }
  void forget(const Key& key) {
    const std::lock_guard lock(mutex_);
    flights_.erase(key);
  }

  std::mutex mutex_;
  std::unordered_map<Key, Flight, Hash> flights_;
};

}  // namespace jitsoftmax::cache
