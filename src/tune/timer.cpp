#include "tune/timer.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cuda/stream.hpp"

namespace jitsoftmax::tune {
namespace {

// Launches a graph, so that short kernels are not measured together with the host's launch time.
constexpr int least_launches = 20;

class Contestant {
 public:
  Contestant(const Enqueue& enqueue, int sets, CUstream stream) : launches_((least_launches - 1) / sets * sets + sets) {
    graph_ = cuda::capture(stream, [&] {
      for (int i = 0; i < launches_; ++i) enqueue(i % sets, stream);
    });
  }

  // Seconds a launch.
  double measure(int replays, CUstream stream, CUevent start, CUevent stop) const {
    const cuda::Driver& driver = cuda::driver();
    cuda::check(driver.EventRecord(start, stream), "cuEventRecord");
    for (int i = 0; i < replays; ++i) cuda::check(driver.GraphLaunch(graph_.get(), stream), "cuGraphLaunch");
    cuda::check(driver.EventRecord(stop, stream), "cuEventRecord");
    cuda::check(driver.EventSynchronize(stop), "cuEventSynchronize");
    float milliseconds = 0;
    cuda::check(driver.EventElapsedTime(&milliseconds, start, stop), "cuEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3 / (static_cast<double>(replays) * launches_);
  }

  void choose_replays(double seconds, CUstream stream, CUevent start, CUevent stop) {
    measure(1, stream, start, stop);  // warms up
    const double once = measure(1, stream, start, stop) * launches_;
    replays_ = std::max(1, static_cast<int>(std::ceil(seconds / std::max(once, 1e-6))));
  }
  [[nodiscard]] int replays() const noexcept { return replays_; }

 private:
  int launches_;
  int replays_ = 1;
  cuda::OwnedGraphExec graph_;
};

}  // namespace

std::vector<Timing> time_interleaved(const std::vector<Enqueue>& contestants, const TimerOptions& options) {
  const cuda::OwnedStream stream = cuda::make_stream();
  const cuda::OwnedEvent start = cuda::make_event();
  const cuda::OwnedEvent stop = cuda::make_event();
  std::vector<Contestant> ready;
  ready.reserve(contestants.size());
  for (const Enqueue& enqueue : contestants) ready.emplace_back(enqueue, options.sets, stream.get());
  for (Contestant& contestant : ready)
    contestant.choose_replays(options.seconds, stream.get(), start.get(), stop.get());

  std::vector<Timing> timings(contestants.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < ready.size(); ++i) {
      timings[i].rounds.push_back(ready[i].measure(ready[i].replays(), stream.get(), start.get(), stop.get()));
    }
  }
  return timings;
}

}  // namespace jitsoftmax::tune
