#include "bench_case.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <utility>

#include "cuda/driver.hpp"
#include "cuda/memory.hpp"
#include "plan/choice.hpp"
#include "plan/launch.hpp"
#include "work.hpp"

namespace jitsoftmax::tools {
namespace {

constexpr float deviation = 3;  // of the inputs: maxima are distinct, and few exponentials underflow

// Inputs and outputs of one launch.
struct BufferSet {
  BufferSet(std::size_t in_bytes, std::size_t out_bytes) : in(in_bytes), out(out_bytes) {}
  cuda::DeviceBuffer in;
  cuda::DeviceBuffer out;
};

class Case {
 public:
  Case(const tune::Instruments& instruments, const BenchCase& shape, const BenchOptions& options) : shape_(shape) {
    const std::int64_t elements = shape.rows * shape.problem.cols;
    const std::int64_t in_bytes = elements * size_of(shape.problem.in);
    const std::int64_t out_bytes = elements * size_of(shape.problem.out);
    const std::int64_t sets = std::clamp<std::int64_t>((options.rotate_bytes - 1) / shape.bytes + 1, 2, 512);
    for (std::int64_t i = 0; i < sets; ++i) {
      // Copies move whole packets of 16 bytes.
      sets_.push_back(std::make_unique<BufferSet>(static_cast<std::size_t>(in_bytes + 16),
                                                  static_cast<std::size_t>(out_bytes + 16)));
      instruments.fill(sets_.back()->in.get(), shape.problem.in, elements, deviation, static_cast<int>(i), nullptr);
    }
    cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
  }

  [[nodiscard]] int sets() const noexcept { return static_cast<int>(sets_.size()); }

  [[nodiscard]] Rows rows(int set) const {
    const BufferSet& buffers = *sets_[static_cast<std::size_t>(set)];
    Rows rows;
    rows.out = buffers.out.get();
    rows.in = buffers.in.get();
    rows.count = shape_.rows;
    rows.inner = shape_.inner;
    return rows;
  }

  // Enqueues a copy of as many bytes as softmax moves.
  [[nodiscard]] tune::Enqueue copy(const tune::Instruments::Copy& copy) const {
    return [this, &copy](int set, CUstream stream) {
      const BufferSet& buffers = *sets_[static_cast<std::size_t>(set)];
      if (size_of(shape_.problem.in) == size_of(shape_.problem.out)) {
        copy.enqueue(buffers.out.get(), buffers.in.get(), shape_.bytes / 2 / 16 * 16, stream);
        return;
      }
      // All of the smaller buffer once and half of it again, out of the larger one, which is twice
      // its size: as many bytes as reading the one and writing the other.
      const bool in_is_larger = size_of(shape_.problem.in) > size_of(shape_.problem.out);
      auto* larger = static_cast<std::byte*>(in_is_larger ? buffers.in.get() : buffers.out.get());
      auto* smaller = static_cast<std::byte*>(in_is_larger ? buffers.out.get() : buffers.in.get());
      const std::int64_t small_bytes = shape_.bytes / 3 / 16 * 16;
      copy.enqueue(smaller, larger, small_bytes, stream);
      copy.enqueue(smaller, larger + small_bytes, small_bytes / 2 / 16 * 16, stream);
    };
  }

  // Runs the kernel on poisoned output and compares a sample of rows.
  [[nodiscard]] Verdict verify_sample(const Kernel& kernel, MaskedRows masked) const {
    const Problem& problem = shape_.problem;
    const Rows all = rows(0);
    const std::int64_t slice = problem.cols * shape_.inner;  // rows that are verified together
    const std::int64_t slices = shape_.rows / shape_.inner;
    const auto out_bytes = static_cast<std::size_t>(slices * slice * size_of(problem.out));
    cuda::check(cuda::driver().MemsetD8(reinterpret_cast<CUdeviceptr>(all.out), 0xff, out_bytes), "cuMemsetD8");
    kernel.launch(all, nullptr);
    cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");

    const std::vector<std::int64_t> chosen = sample(slices, slice);
    const auto in_slice = static_cast<std::size_t>(slice * size_of(problem.in));
    const auto out_slice = static_cast<std::size_t>(slice * size_of(problem.out));
    std::vector<std::byte> in(in_slice * chosen.size());
    std::vector<std::byte> out(out_slice * chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto at = static_cast<std::size_t>(chosen[i]);
      sets_[0]->in.download(in.data() + i * in_slice, in_slice, at * in_slice);
      sets_[0]->out.download(out.data() + i * out_slice, out_slice, at * out_slice);
    }
    Work work;
    work.problem = problem;
    work.split = {static_cast<std::int64_t>(chosen.size()), problem.cols, shape_.inner};
    work.in = in.data();
    work.out = out.data();
    return verify(work, masked);
  }

 private:
  // The first, the last and random ones between, few enough to be compared in a moment.
  static std::vector<std::int64_t> sample(std::int64_t slices, std::int64_t slice) {
    constexpr std::int64_t most_elements = 1 << 20;
    const std::int64_t count = std::clamp<std::int64_t>(most_elements / slice, std::min<std::int64_t>(slices, 2), 256);
    std::vector<std::int64_t> chosen;
    if (count >= slices) {
      for (std::int64_t i = 0; i < slices; ++i) chosen.push_back(i);
      return chosen;
    }
    std::mt19937_64 random(1);
    chosen = {0, slices - 1};
    while (static_cast<std::int64_t>(chosen.size()) < count) {
      chosen.push_back(std::uniform_int_distribution<std::int64_t>(0, slices - 1)(random));
    }
    return chosen;
  }

  const BenchCase& shape_;
  std::vector<std::unique_ptr<BufferSet>> sets_;
};

// Which of the bundle such a launch runs.
std::string name_of_kernel(const Engine& engine, const Problem& problem, const Arch& arch, const Rows& rows) {
  const Options& options = engine.options();
  const plan::Bundle bundle = plan::choose(problem, arch, options.variant, options.deterministic);
  return plan::name_expression(bundle[plan::select(bundle, plan::check(problem, rows))]);
}

Measured prepare(const Contender& contender, const Case& buffers, const Problem& problem, const Arch& arch,
                 Kernel& kernel) {
  Measured measured;
  measured.name = contender.name;
  try {
    kernel = contender.engine->prepare(problem);
    measured.kernel = name_of_kernel(*contender.engine, problem, arch, buffers.rows(0));
    measured.verdict = buffers.verify_sample(kernel, contender.engine->options().masked_rows);
    if (measured.verdict->wrong > 0) measured.error = "wrong result";
  } catch (const Error& error) {
    // A variant that cannot serve this shape, or a launch that the device has no room for, is a gap
    // in the table. Anything else ends the run.
    if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::driver_error) throw;
    measured.error = error.what();
  }
  return measured;
}

}  // namespace

BenchCase bench(const cuda::PrimaryContext& context, const tune::Instruments& instruments, const Problem& problem,
                std::int64_t rows, const std::vector<Contender>& contenders, const BenchOptions& options) {
  BenchCase result;
  result.problem = problem;
  result.rows = rows;
  if (problem.layout == Layout::strided) result.inner = rows;
  result.bytes = rows * problem.cols * (size_of(problem.in) + size_of(problem.out));
  const Case buffers(instruments, result, options);

  std::vector<tune::Enqueue> enqueues;
  for (const tune::Instruments::Copy& copy : instruments.copies()) enqueues.push_back(buffers.copy(copy));
  const std::size_t copies = enqueues.size();
  std::vector<Kernel> kernels(contenders.size());
  std::vector<Measured*> timed;
  result.kernels.reserve(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    result.kernels.push_back(
        prepare(contenders[i], buffers, problem, cuda::architecture(context.device()), kernels[i]));
    if (!result.kernels.back().error.empty()) continue;
    timed.push_back(&result.kernels.back());
    enqueues.emplace_back(
        [&buffers, kernel = kernels[i]](int set, CUstream stream) { kernel.launch(buffers.rows(set), stream); });
  }

  const auto distribute = [&](std::vector<tune::Timing> timings, auto store) {
    std::size_t fastest = 0;
    for (std::size_t i = 1; i < copies; ++i) {
      if (timings[i].median() < timings[fastest].median()) fastest = i;
    }
    result.copy.name = "copy";
    result.copy.kernel = instruments.copies()[fastest].name;
    for (std::size_t i = 0; i < timed.size(); ++i) store(*timed[i], std::move(timings[copies + i]));
    store(result.copy, std::move(timings[fastest]));
  };
  if (static_cast<std::size_t>(result.bytes) <= cuda::l2_bytes(context.device()) / 2) {
    distribute(tune::time_interleaved(enqueues, {.sets = 1, .rounds = options.rounds, .seconds = options.seconds}),
               [](Measured& measured, tune::Timing timing) { measured.warm = std::move(timing); });
  }
  distribute(
      tune::time_interleaved(enqueues, {.sets = buffers.sets(), .rounds = options.rounds, .seconds = options.seconds}),
      [](Measured& measured, tune::Timing timing) { measured.cold = std::move(timing); });
  return result;
}

}  // namespace jitsoftmax::tools
