#include "host/executor.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "host/block.hpp"

namespace jitsoftmax::host_test {
namespace {

// Blocks and the stacks of their threads are dear to make, so launches share them.
class BlockPool {
 public:
  std::unique_ptr<Block> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Block>();
    auto block = std::move(free_.back());
    free_.pop_back();
    return block;
  }
  void give_back(std::unique_ptr<Block> block) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(block));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> free_;
};

}  // namespace

void run_grid(const plan::Geometry& geometry, const std::function<void()>& kernel, std::uint64_t seed) {
  static BlockPool pool;
  const long long blocks = static_cast<long long>(geometry.grid_x) * geometry.grid_y;
  std::atomic<long long> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    auto block = pool.take();
    try {
      for (long long index = next++; index < blocks; index = next++) block->run(geometry, index, kernel, seed);
    } catch (...) {
      next = blocks;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
    pool.give_back(std::move(block));
  };
  {
    const long long cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;
    for (long long i = 1; i < std::min(cores, blocks); ++i) helpers.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace jitsoftmax::host_test
