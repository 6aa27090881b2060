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
constexpr std::int64_t bytes_a_thread = 512 * 1024;

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
  std::fenv_t callers_;
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

// Merges the partials of one unit into its first chunk's.
template <class Cover>
void merge_chunks(const Cover& cover, Partial* partials) {
  for (int lane = 0; lane < cover.lanes(); ++lane) {
    partials[lane] = merge(partials + lane, cover.chunks(), cover.lanes());
  }
}

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

  const std::int64_t partials_a_unit = chunks * cover.lanes();
  if (units >= workers * tasks_a_thread) {
    // A unit stays with one thread, and its input in that thread's cache.
    std::vector<Partial> partials(static_cast<std::size_t>(partials_a_unit * workers));
    parallel(units, workers, [&](std::int64_t unit, int worker) {
      Partial* own = partials.data() + worker * partials_a_unit;
      void* y = scratch.of(worker);
      for (std::int64_t c = 0; c < chunks; ++c) cover.partial(unit, c, y, own + c * cover.lanes());
      merge_chunks(cover, own);
      for (std::int64_t c = 0; c < chunks; ++c) cover.finish(unit, c, y, own);
    });
    return;
  }

  std::vector<Partial> partials(static_cast<std::size_t>(partials_a_unit * units));
  const auto of = [&](std::int64_t unit) { return partials.data() + unit * partials_a_unit; };
  parallel(units * chunks, workers, [&](std::int64_t task, int worker) {
    const std::int64_t unit = task / chunks;
    const std::int64_t chunk = task % chunks;
    cover.partial(unit, chunk, scratch.of(worker), of(unit) + chunk * cover.lanes());
  });
  for (std::int64_t unit = 0; unit < units; ++unit) merge_chunks(cover, of(unit));
  parallel(units * chunks, workers, [&](std::int64_t task, int worker) {
    cover.finish(task / chunks, task % chunks, scratch.of(worker), of(task / chunks));
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
