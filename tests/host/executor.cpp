#include "host/executor.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "host/cluster.hpp"

namespace jitsoftmax::host_test {
namespace {

// Clusters and the stacks of their threads are dear to make, so launches share them.
class ClusterPool {
 public:
  std::unique_ptr<Cluster> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Cluster>();
    auto cluster = std::move(free_.back());
    free_.pop_back();
    return cluster;
  }
  void give_back(std::unique_ptr<Cluster> cluster) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(cluster));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Cluster>> free_;
};

}  // namespace

void run_grid(const plan::Geometry& geometry, const std::function<void()>& kernel, std::uint64_t seed) {
  static ClusterPool pool;
  const long long clusters = static_cast<long long>(geometry.grid) / (geometry.cluster * geometry.gang);
  std::atomic<long long> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    auto cluster = pool.take();
    try {
      for (long long index = next++; index < clusters; index = next++) cluster->run(geometry, index, kernel, seed);
    } catch (...) {
      next = clusters;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
    pool.give_back(std::move(cluster));
  };
  {
    const long long cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;
    for (long long i = 1; i < std::min(cores, clusters); ++i) helpers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace jitsoftmax::host_test
