#include "bench_case.hpp"

#include <cstddef>
#include <utility>

#include "tune/buffers.hpp"

namespace jitsoftmax::tools {
namespace {

// Enqueues a copy of as many bytes as softmax moves.
tune::Enqueue enqueue_copy(const tune::Instruments::Copy& copy, const tune::Shape& shape,
                           const tune::RotatedBuffers& buffers) {
  return [&copy, &shape, &buffers](int set, CUstream stream) {
    const Rows rows = buffers.rows(set);
    if (size_of(shape.problem.in) == size_of(shape.problem.out)) {
      copy.enqueue(rows.out, rows.in, shape.bytes() / 2 / 16 * 16, stream);
      return;
    }
    // All of the smaller buffer once and half of it again, out of the larger one, which is twice
    // its size: as many bytes as reading the one and writing the other.
    auto* const in = static_cast<std::byte*>(const_cast<void*>(rows.in));  // NOLINT: our own buffer
    auto* const out = static_cast<std::byte*>(rows.out);
    const bool in_is_larger = size_of(shape.problem.in) > size_of(shape.problem.out);
    const std::byte* const larger = in_is_larger ? in : out;
    std::byte* const smaller = in_is_larger ? out : in;
    const std::int64_t small_bytes = shape.bytes() / 3 / 16 * 16;
    copy.enqueue(smaller, larger, small_bytes, stream);
    copy.enqueue(smaller, larger + small_bytes, small_bytes / 2 / 16 * 16, stream);
  };
}

Measured prepare(const Contender& contender, tune::RotatedBuffers& buffers, const Problem& problem, Kernel& kernel) {
  Measured measured;
  measured.name = contender.name;
  try {
    kernel = contender.engine->prepare(problem);
    measured.kernel = kernel.specialization_for(buffers.rows(0));
    measured.verdict =
        buffers.verify_sample([&](const Rows& rows) { kernel.launch(rows); }, contender.engine->options().masked_rows);
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
  const tune::Shape shape{problem, rows, result.inner};
  result.bytes = shape.bytes();
  tune::RotatedBuffers buffers(instruments, shape, options.rotate_bytes);

  std::vector<tune::Enqueue> enqueues;
  for (const tune::Instruments::Copy& copy : instruments.copies()) {
    enqueues.push_back(enqueue_copy(copy, shape, buffers));
  }
  const std::size_t copies = enqueues.size();
  std::vector<Kernel> kernels(contenders.size());
  std::vector<Measured*> timed;
  result.kernels.reserve(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    result.kernels.push_back(prepare(contenders[i], buffers, problem, kernels[i]));
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
