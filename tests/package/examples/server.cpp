// A server: one engine, many workers, and rows of lengths that nobody knew beforehand. A worker has a stream and
// buffers of its own; the engine is shared as it is. Two workers that need the same new kernel make it once.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <jitsoftmax/jitsoftmax.hpp>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cuda.hpp"

namespace {

constexpr std::size_t longest = 8192;

struct Request {
  std::size_t cols = 0;
};

class Queue {
 public:
  void put(Request request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(request);
    changed_.notify_one();
  }
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  // Waits for a request; nothing when the queue is closed and empty.
  std::optional<Request> take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !requests_.empty(); });
    if (requests_.empty()) return std::nullopt;
    const Request request = requests_.front();
    requests_.pop_front();
    return request;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool closed_ = false;
};

class Worker {
 public:
  explicit Worker(jitsoftmax::Engine& engine) : engine_(engine) {}

  // One row of ones, so that the answer is known: 1 / cols.
  bool serve(const Request& request) {
    const std::size_t bytes = request.cols * sizeof(float);
    host_.assign(request.cols, 1.0F);
    check(cudaMemcpyAsync(device_.get(), host_.data(), bytes, cudaMemcpyHostToDevice, stream_.get()));
    jitsoftmax::Problem problem;
    problem.cols = static_cast<std::int64_t>(request.cols);
    jitsoftmax::Rows rows;
    rows.in = device_.get();
    rows.out = device_.get();
    rows.count = 1;
    engine_.softmax(problem, rows, stream_.get());
    check(cudaMemcpyAsync(host_.data(), device_.get(), bytes, cudaMemcpyDeviceToHost, stream_.get()));
    check(cudaStreamSynchronize(stream_.get()));
    const float right = 1.0F / static_cast<float>(request.cols);
    const float error = host_.back() - right;
    return error < 1e-5F * right && error > -1e-5F * right;
  }

 private:
  jitsoftmax::Engine& engine_;
  OwnedStream stream_ = make_stream();
  DeviceFloats device_ = device_floats(longest);
  std::vector<float> host_;
};

}  // namespace

int main() {
  if (!gpu_is_here()) return skipped;
  jitsoftmax::Options options = jitsoftmax::Options::from_environment();
  options.on_miss = jitsoftmax::OnMiss::compile;  // the first request of a new length waits for its kernel
  jitsoftmax::Engine engine(options);

  Queue queue;
  std::atomic<int> right{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      Worker worker(engine);
      while (const std::optional<Request> request = queue.take()) right += worker.serve(*request) ? 1 : 0;
    });
  }
  for (std::size_t i = 0; i < 64; ++i) queue.put({1000 * (1 + i % 8)});
  queue.close();
  for (std::thread& worker : workers) worker.join();
  std::printf("%d of 64 answers are right\n", right.load());
}
