// Background: a few threads that make what nobody waits for.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace jitsoftmax {

class Background {
 public:
  // Called once: with false by a worker, or with true where it is dropped instead, by the thread that
  // stops. Must not throw.
  using Job = std::function<void(bool dropped)>;

  // At most so many jobs run at once (at least 1). No thread is started before there is a job.
  explicit Background(int workers);
  // As stop().
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Jobs begin in the order in which they came. Once it has been stopped, and in a forked child, they are
  // dropped at once. Any thread.
  void submit(const Job& job);

  // Drops the jobs that wait and returns when those that run have ended. In a forked child, which has no
  // workers, it does nothing.
  void stop() noexcept;

  // All of this process. Called when it exits, by itself.
  static void stop_all() noexcept;

  // For a job of several steps, to end early. Any thread.
  [[nodiscard]] bool stopping() const noexcept;

  // Jobs that have not begun.
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jitsoftmax
