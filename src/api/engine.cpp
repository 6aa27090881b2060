#include <atomic>
#include <chrono>
#include <cstddef>
#include <jitsoftmax/engine.hpp>
#include <mutex>
#include <utility>

#include "api/autotune.hpp"
#include "api/code.hpp"
#include "api/cuda_executable.hpp"
#include "api/host_executable.hpp"
#include "api/kernel_table.hpp"
#include "api/load_or_replace.hpp"
#include "api/warmup.hpp"
#include "base/log.hpp"
#include "cache/key.hpp"
#include "cache/single_flight.hpp"
#include "cuda/device.hpp"
#include "cuda/driver.hpp"
#include "plan/choice.hpp"
#include "plan/launch.hpp"
#include "plan/tuned.hpp"
#include "tune/records.hpp"

namespace jitsoftmax {

class Engine::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)),
        code_(options_),
        records_({.layers = code_.store().options().layers,
                  .directory = code_.store().options().directory,
                  .templates = cache::digest_of(jit::templates()).hex(),
                  .log = options_.log,
                  .trusted = options_.trusted_owners}) {
    if (options_.device.kind() == Device::Kind::cuda) {
      context_ = std::make_shared<const cuda::PrimaryContext>(options_.device.ordinal());
    }
  }

  std::shared_ptr<const Executable> prepare(const Problem& problem) {
    plan::check(problem);
    if (problem.cols == 0) return std::make_shared<const HostExecutable>(problem, options_.masked_rows);
    const cuda::ContextScope scope(context());
    const int device = device_in_use();
    if (const KernelTable::Entry* ready = kernels_.find(problem, device)) return ready->executable;
    return make(problem, device)->executable;
  }

  void softmax(const Problem& problem, const Rows& rows, Stream stream) {
    const KernelTable::Entry* entry = nullptr;
    // The usual case first: no context is pushed and nothing is checked twice.
    if (problem.cols != 0 && rows.count != 0) entry = kernels_.find(problem, device_in_use());
    if (entry == nullptr) {
      plan::check(problem);
      const Rows checked = plan::check(problem, rows);
      if (problem.cols == 0 || checked.count == 0) return;
      const cuda::ContextScope scope(context());
      refuse_while_capturing(problem, stream);
      entry = make(problem, device_in_use());
    }
    entry->executable->launch(rows, stream);
  }

  WarmupReport warmup(const std::vector<Problem>& problems, const std::vector<Arch>& archs,
                      const WarmupOptions& options) {
    return warm_up(code_, options_, problems, archs, options);
  }

  TuneReport autotune(const Problem& problem, std::int64_t rows, const TuneOptions& options) {
    plan::check(problem);
    refuse_to_tune(problem, rows);
    if (problem.cols == 0 || rows == 0) {
      TuneReport nothing;
      nothing.problem = problem;
      return nothing;
    }
    const cuda::ContextScope scope(context());
    const int device = device_in_use();
    const std::lock_guard lock(tuning_);  // two at once would measure each other
    return jitsoftmax::autotune(code_, records_, options_.masked_rows, problem, rows, device, options);
  }

  [[nodiscard]] Stats stats() const {
    Stats stats;
    code_.report(stats);
    stats.tuned_kernels = tuned_.load(std::memory_order_relaxed);
    stats.kernels = loaded_.load(std::memory_order_relaxed);
    stats.load_seconds = static_cast<double>(load_nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
    return stats;
  }

  [[nodiscard]] const Options& options() const noexcept { return options_; }

 private:
  static constexpr int host_device = -1;

  // What tells kernels of one device from those of another in the table.
  [[nodiscard]] int device_in_use() const {
    switch (options_.device.kind()) {
      case Device::Kind::current:
        return cuda::current_device();
      case Device::Kind::cuda:
        return context_->device();
      case Device::Kind::host:
        break;
    }
    return host_device;
  }

  [[nodiscard]] CUcontext context() const noexcept { return context_ ? context_->context() : nullptr; }

  void refuse_while_capturing(const Problem& problem, Stream stream) const {
    if (options_.device.kind() != Device::Kind::host && cuda::is_capturing(stream)) {
      throw Error(ErrorCode::capturing, "no kernel for " + plan::describe(problem) +
                                            " is ready and the stream is being captured, when nothing can be loaded; "
                                            "call Engine::prepare before the capture begins");
    }
  }

  // One make a problem and device at a time, however many threads ask.
  const KernelTable::Entry* make(const Problem& problem, int device) {
    return flights_.run({problem, device}, [&]() -> const KernelTable::Entry* {
      if (const KernelTable::Entry* ready = kernels_.find(problem, device)) return ready;
      return kernels_.insert(problem, device, make_executable(problem, device));
    });
  }

  std::shared_ptr<const Executable> make_executable(const Problem& problem, int device) {
    if (device == host_device) return std::make_shared<const HostExecutable>(problem, options_.masked_rows);
    const Arch arch = cuda::architecture(device);
    plan::Bundle built_in = plan::choose(problem, arch, options_.variant, options_.deterministic);
    if (options_.use_records && options_.variant.empty() && !options_.deterministic) {
      const plan::Tuned picks = recorded_picks(records_, problem, built_in, device);
      if (picks.few || picks.many) {
        try {
          return make_cuda_executable(problem, plan::with_picks(built_in, picks), arch);
        } catch (const Error& error) {
          // A record makes kernels faster, and nothing fail that works without it.
          base::report(options_.log, LogLevel::warning,
                       "jitsoftmax: what a tuning record picked for " + plan::describe(problem) +
                           " cannot be used, the built-in choice is: " + error.what());
        }
      }
    }
    if (!options_.variant.empty()) {
      for (plan::Specialization& specialization : built_in) specialization.origin = Origin::variant;
    }
    return make_cuda_executable(problem, std::move(built_in), arch);
  }

  std::shared_ptr<const Executable> make_cuda_executable(const Problem& problem, plan::Bundle bundle,
                                                         const Arch& arch) {
    std::vector<cuda::LoadedKernel> loaded;
    loaded.reserve(bundle.size());
    std::uint64_t tuned = 0;
    for (const plan::Specialization& specialization : bundle) {
      Code::Result code = code_.get(specialization, arch, Code::Purpose::launch);
      loaded.push_back(load_or_replace(code_, std::move(code), specialization, arch, Code::Purpose::launch,
                                       [&](const jit::Cubin& cubin) { return timed_load(specialization, cubin); }));
      loaded_.fetch_add(1, std::memory_order_relaxed);
      if (specialization.origin == Origin::record) ++tuned;
    }
    tuned_.fetch_add(tuned, std::memory_order_relaxed);
    return std::make_shared<const CudaExecutable>(problem, options_.masked_rows, std::move(bundle), std::move(loaded),
                                                  context_);
  }

  cuda::LoadedKernel timed_load(const plan::Specialization& specialization, const jit::Cubin& cubin) {
    const auto start = std::chrono::steady_clock::now();
    cuda::LoadedKernel kernel = load(specialization, cubin);
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
    load_nanoseconds_.fetch_add(static_cast<std::uint64_t>(elapsed.count()), std::memory_order_relaxed);
    return kernel;
  }

  void refuse_to_tune(const Problem& problem, std::int64_t rows) const {
    const auto refuse = [&](ErrorCode code, const std::string& why) {
      throw Error(code, "autotune of " + plan::describe(problem) + ": " + why);
    };
    if (rows < 0) refuse(ErrorCode::invalid_argument, "the number of rows, " + std::to_string(rows) + ", is negative");
    if (options_.device.kind() == Device::Kind::host)
      refuse(ErrorCode::invalid_argument,
             "it measures a GPU, and this engine computes on the CPU; use Device::cuda(n) or Device::current()");
    if (options_.deterministic || !options_.variant.empty())
      refuse(ErrorCode::invalid_argument,
             "an engine that is deterministic, or has a fixed variant, uses no records; tune with one that is not");
    if (code_.store().options().directory.empty())
      refuse(ErrorCode::io_error,
             "nowhere to keep what is found: no cache directory; set JITSOFTMAX_CACHE_DIR or Options::cache_dir");
  }

  struct FlightKey {
    Problem problem;
    int device;
    friend bool operator==(const FlightKey&, const FlightKey&) = default;
  };
  struct FlightHash {
    std::size_t operator()(const FlightKey& key) const noexcept { return KernelTable::hash(key.problem, key.device); }
  };

  Options options_;
  Code code_;
  tune::Records records_;
  std::shared_ptr<const cuda::PrimaryContext> context_;  // Device::cuda only
  KernelTable kernels_;
  cache::SingleFlight<FlightKey, const KernelTable::Entry*, FlightHash> flights_;
  std::mutex tuning_;
  std::atomic<std::uint64_t> loaded_{0};
  std::atomic<std::uint64_t> tuned_{0};
  std::atomic<std::uint64_t> load_nanoseconds_{0};
};

Engine::Engine(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Kernel Engine::prepare(const Problem& problem) { return Kernel(impl_->prepare(problem)); }

void Engine::softmax(const Problem& problem, const Rows& rows, Stream stream) { impl_->softmax(problem, rows, stream); }

WarmupReport Engine::warmup(const std::vector<Problem>& problems, const std::vector<Arch>& archs,
                            const WarmupOptions& options) {
  return impl_->warmup(problems, archs, options);
}

TuneReport Engine::autotune(const Problem& problem, std::int64_t rows, const TuneOptions& options) {
  return impl_->autotune(problem, rows, options);
}

Stats Engine::stats() const { return impl_->stats(); }

const Options& Engine::options() const noexcept { return impl_->options(); }

}  // namespace jitsoftmax
