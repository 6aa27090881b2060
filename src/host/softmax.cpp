// Spreads one call over the cores.
#include "host/softmax.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "host/cover.hpp"
#include "host/kernels.hpp"
#include "host/parallel.hpp"
#include "host/variants.hpp"

namespace jitsoftmax::host {
namespace {

// About 50 microseconds of work; a thread costs half of that to start. Counted in accumulators.
constexpr std::int64_t bytes_a_thread = std::int64_t{512} * 1024;

// More tasks than threads, so that a thread that is held up delays little.
constexpr std::int64_t tasks_a_thread = 8;

// Subnormals are kept and results rounded to nearest even if the caller's thread is set otherwise.
// Threads that are started meanwhile inherit it.
class DefaultArithmetic {
 public:
  DefaultArithmetic() noexcept {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&callers_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t callers_{};
};

// One scratch buffer a worker, on cache lines of its own.
class Scratch {
 public:
  Scratch(int workers, std::int64_t bytes)
      : lines_((static_cast<std::size_t>(bytes) + sizeof(Line) - 1) / sizeof(Line)),
        buffer_(std::make_unique_for_overwrite<Line[]>(lines_ * static_cast<std::size_t>(workers))) {}

  [[nodiscard]] void* of(int worker) const noexcept { return &buffer_[lines_ * static_cast<std::size_t>(worker)]; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::size_t lines_;
  std::unique_ptr<Line[]> buffer_;
};

// The partials of one unit: those of its chunks, and then the merged ones.
template <class Cover>
class Partials {
 public:
  Partials(const Cover& cover, Partial* at) noexcept : cover_(cover), at_(at) {}

  [[nodiscard]] static std::int64_t size(const Cover& cover) noexcept { return (cover.chunks() + 1) * cover.lanes(); }

  void reduce(std::int64_t unit, std::int64_t chunk, void* y) const { cover_.partial(unit, chunk, y, of(chunk)); }
  void merge_all() const {
    for (int lane = 0; lane < cover_.lanes(); ++lane) {
      of(cover_.chunks())[lane] = merge(at_ + lane, cover_.chunks(), cover_.lanes());
    }
  }
  void finish(std::int64_t unit, std::int64_t chunk, void* y) const {
    cover_.finish(unit, chunk, y, of(chunk), of(cover_.chunks()));
  }

 private:
  [[nodiscard]] Partial* of(std::int64_t chunk) const noexcept { return at_ + chunk * cover_.lanes(); }

  const Cover& cover_;
  Partial* at_;
};

template <class Cover>
void run(const Cover& cover, int workers) {
  const std::int64_t units = cover.units();
  const std::int64_t chunks = cover.chunks();
  const Scratch scratch(workers, cover.scratch_bytes());

  if (chunks == 1) {
    const std::int64_t grain = std::max<std::int64_t>(1, units / (workers * tasks_a_thread));
    parallel((units + grain - 1) / grain, workers, [&](std::int64_t task, int worker) {
      const std::int64_t end = std::min(units, (task + 1) * grain);
      for (std::int64_t unit = task * grain; unit < end; ++unit) cover.whole(unit, scratch.of(worker));
    });
    return;
  }

  const bool unit_a_task = units >= workers * tasks_a_thread;
  const std::int64_t size = Partials<Cover>::size(cover);
  std::vector<Partial> memory(static_cast<std::size_t>(size * (unit_a_task ? workers : units)));
  const auto slot = [&](std::int64_t i) { return Partials<Cover>(cover, memory.data() + i * size); };

  if (unit_a_task) {
    // A unit stays with one thread, and its input in that thread's cache.
    parallel(units, workers, [&](std::int64_t unit, int worker) {
      const Partials<Cover> partials = slot(worker);
      for (std::int64_t c = 0; c < chunks; ++c) partials.reduce(unit, c, scratch.of(worker));
      partials.merge_all();
      for (std::int64_t c = 0; c < chunks; ++c) partials.finish(unit, c, scratch.of(worker));
    });
    return;
  }
  parallel(units * chunks, workers, [&](std::int64_t task, int worker) {
    slot(task / chunks).reduce(task / chunks, task % chunks, scratch.of(worker));
  });
  for (std::int64_t unit = 0; unit < units; ++unit) slot(unit).merge_all();
  parallel(units * chunks, workers, [&](std::int64_t task, int worker) {
    slot(task / chunks).finish(task / chunks, task % chunks, scratch.of(worker));
  });
}

}  // namespace

Call::Call(const Problem& of_problem, const Rows& of_rows, MaskedRows of_masked, const Kernels& kernels)
    : problem(of_problem),
      rows(of_rows),
      masked(of_masked),
      in(kernels.element[static_cast<int>(problem.in)]),
      out(kernels.element[static_cast<int>(problem.out)]),
      accumulator(kernels.accumulator[problem.in == DType::f64]),
      accumulator_bytes(problem.in == DType::f64 ? 8 : 4) {
  // Past the caches, a store does not read the line that it overwrites. It pays where the output
  // would not stay in a cache anyway, and rows are long against a line; in place the line is there.
  constexpr std::int64_t beyond_caches = 32 << 20;
  constexpr std::int64_t long_row = 4096;
  const std::int64_t row_bytes = problem.cols * size_of(problem.out);
  prefetch = problem.cols * size_of(problem.in) * rows.count >= beyond_caches;
  stream = rows.in != rows.out && row_bytes >= long_row && row_bytes * rows.count >= beyond_caches;
}

const void* Call::input(std::int64_t offset) const noexcept {
  return static_cast<const char*>(rows.in) + offset * size_of(problem.in);
}

void* Call::output(std::int64_t offset) const noexcept {
  return static_cast<char*>(rows.out) + offset * size_of(problem.out);
}

// A row with nothing above -inf has exponentials of 0 and the sum 0. Left alone, both operations
// make it NaN: 0 * inf, and -inf - (-inf).
Shift Call::shift(double maximum, double sum) const noexcept {
  if (sum == 0 && masked == MaskedRows::zero) return {maximum, 0};
  return {maximum, log() ? std::log(sum) : 1 / sum};
}

// Compensated (Neumaier), since a row may have thousands of chunks.
Partial merge(const Partial* partials, std::int64_t count, std::int64_t stride) noexcept {
  double maximum = partials[0].maximum;
  for (std::int64_t i = 1; i < count; ++i) maximum = std::max(maximum, partials[i * stride].maximum);
  double sum = 0;
  double lost = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Partial& partial = partials[i * stride];
    if (partial.sum == 0) continue;  // all -inf, perhaps as the maximum is
    const double term = partial.sum * std::exp(partial.maximum - maximum);
    const double next = sum + term;
    lost += std::abs(sum) >= std::abs(term) ? (sum - next) + term : (term - next) + sum;
    sum = next;
  }
  return {maximum, sum + lost};
}

void softmax(const Problem& problem, const Rows& rows, MaskedRows masked, int threads, const Kernels& kernels) {
  const DefaultArithmetic arithmetic;
  const Call call(problem, rows, masked, kernels);
  const std::int64_t worth = rows.count * problem.cols / (bytes_a_thread / call.accumulator_bytes);
  int workers = 1;
  if (worth > 1 && threads != 1) {
    workers = static_cast<int>(std::min<std::int64_t>(worth, threads > 0 ? threads : available_cores()));
  }
  if (Across::suits(problem, rows)) {
    run(Across(call), workers);
  } else {
    run(Along(call), workers);
  }
}

void softmax(const Problem& problem, const Rows& rows, MaskedRows masked, int threads) {
  softmax(problem, rows, masked, threads, *usable_kernels().back());
}

}  // namespace jitsoftmax::host
