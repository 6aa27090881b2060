// Implements host/parallel.hpp.
#include "host/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>
#if defined(__linux__)
#include <sched.h>
#endif

namespace jitsoftmax::host {

int available_cores() {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel(std::int64_t tasks, int workers, const std::function<void(std::int64_t task, int worker)>& work) {
  std::atomic<std::int64_t> next = 0;
  const auto run = [&](int worker) {
    for (std::int64_t task = next.fetch_add(1, std::memory_order_relaxed); task < tasks;
         task = next.fetch_add(1, std::memory_order_relaxed)) {
      work(task, worker);
    }
  };
  workers = static_cast<int>(std::min<std::int64_t>(workers, tasks));
  std::vector<std::jthread> others;
  if (workers > 1) {
    others.reserve(static_cast<std::size_t>(workers) - 1);
    try {
      for (int worker = 1; worker < workers; ++worker) others.emplace_back([&run, worker] { run(worker); });
    } catch (const std::system_error&) {
      // A limit on threads is no reason to fail: those that started share the tasks.
    }
  }
  run(0);
}

}  // namespace jitsoftmax::host
