#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <jitsoftmax/engine.hpp>
#include <mutex>
#include <thread>
#include <utility>

#include "api/autotune.hpp"
#include "api/background.hpp"
#include "api/code.hpp"
#include "api/cuda_executable.hpp"
#include "api/host_executable.hpp"
#include "api/kernel_table.hpp"
#include "api/load_or_replace.hpp"
#include "api/miss.hpp"
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
namespace {

// Compiles at once, where the application names no number: it has better uses for its cores.
int default_workers() noexcept { return std::clamp(static_cast<int>(std::thread::hardware_concurrency() / 4), 1, 4); }

}  // namespace

class Engine::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)),
        code_(options_),
        records_({.layers = code_.store().options().layers,
                  .directory = code_.store().options().directory,
                  .templates = cache::digest_of(jit::templates()).hex(),
                  .log = options_.log,
                  .trusted = options_.trusted_owners}),
        kernels_(options_.max_kernels.value_or(KernelTable::no_limit)),
        background_(options_.workers > 0 ? options_.workers : default_workers()) {
    if (options_.device.kind() == Device::Kind::cuda) {
      context_ = std::make_shared<const cuda::PrimaryContext>(options_.device.ordinal());
    }
  }

  std::shared_ptr<const Executable> prepare(const Problem& problem) {
    plan::check(problem);
    if (problem.cols == 0) return std::make_shared<const HostExecutable>(problem, options_.masked_rows);
    const cuda::ContextScope scope(context());
    return make(kernels_.entry(problem, device_in_use()));
  }

  std::future<Kernel> prepare_async(const Problem& problem) {
    auto promise = std::make_shared<std::promise<Kernel>>();
    std::future<Kernel> result = promise->get_future();
    try {
      background_.submit([this, problem, promise, context = context_to_work_in()](bool dropped) {
        try {
          if (dropped) stop_making(problem);
          const cuda::ContextScope scope(context);
          promise->set_value(Kernel(prepare(problem)));
        } catch (...) {
          promise->set_exception(std::current_exception());
        }
      });
    } catch (const Error&) {
      promise->set_exception(std::current_exception());
    }
    return result;
  }

  void prepare_generic(const Problem& problem) {
    plan::check(problem);
    const cuda::ContextScope scope(context());
    if (options_.device.kind() != Device::Kind::host) (void)make(generic_entry(problem, device_in_use()));
  }

  void softmax(const Problem& problem, const Rows& rows, Stream stream) {
    // The usual case first: no context is pushed and nothing is checked twice.
    if (problem.cols != 0 && rows.count != 0) {
      KernelTable::Entry* const entry = kernels_.find(problem, device_in_use());
      if (entry != nullptr && (launch_ready(*entry, rows, stream) || launch_generic(*entry, rows, stream))) return;
    }
    plan::check(problem);
    const Rows checked = plan::check(problem, rows);
    if (problem.cols == 0 || checked.count == 0) return;
    const cuda::ContextScope scope(context());
    KernelTable::Entry& entry = kernels_.entry(problem, device_in_use());
    if (generic_first_) {
      get_generic(entry, stream);
      launch_generic(entry, checked, stream);
    } else {
      refuse_while_capturing(problem, stream);
      make(entry)->launch(checked, stream);
    }
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
    stats.evictions = kernels_.evictions();
    stats.background_made = background_made_.load(std::memory_order_relaxed);
    stats.background_failures = background_failures_.load(std::memory_order_relaxed);
    stats.background_waiting = background_.waiting();
    stats.tuned_kernels = tuned_.load(std::memory_order_relaxed);
    stats.kernels = loaded_.load(std::memory_order_relaxed);
    stats.load_seconds += static_cast<double>(load_nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
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

  // False if nothing is ready. Locks nothing, and without a limit writes nothing.
  bool launch_ready(KernelTable::Entry& entry, const Rows& rows, Stream stream) {
    std::optional<KernelTable::Lease> lease;
    if (kernels_.has_limit()) lease.emplace(kernels_, entry);
    const Executable* const ready = entry.ready();
    if (ready == nullptr) return false;
    ready->launch(rows, stream);
    return true;
  }

  // OnMiss::background, where nothing is ready: gives the entry the generic kernel.
  void get_generic(KernelTable::Entry& entry, Stream stream) {
    KernelTable::Entry& any_length = generic_entry(entry.problem, entry.device);
    if (any_length.ready() == nullptr) refuse_while_capturing(entry.problem, stream);
    const auto loaded = std::static_pointer_cast<const CudaExecutable>(make(any_length));
    kernels_.set_generic(entry, std::make_shared<const CudaExecutable>(*loaded, entry.problem));
  }

  // False if the entry has none. Asks for the exact kernel once that is worth it.
  bool launch_generic(KernelTable::Entry& entry, const Rows& rows, Stream stream) {
    const Executable* const generic = entry.generic();
    if (generic == nullptr) return false;
    if (entry.uses.fetch_add(1, std::memory_order_relaxed) + 1 ==
        std::max<std::int64_t>(options_.specialize_after, 1)) {
      kernels_.serve_generic(entry);
      specialize(entry);
    }
    generic->launch(rows, stream);
    return true;
  }

  void specialize(KernelTable::Entry& entry) {
    background_.submit([this, &entry, context = context_to_work_in()](bool dropped) {
      if (dropped) return;
      try {
        const cuda::ContextScope scope(context);
        (void)make(entry);
        background_made_.fetch_add(1, std::memory_order_relaxed);
      } catch (const Error& error) {
        keep_generic(entry, error);
      } catch (const std::exception& error) {
        keep_generic(entry, Error(ErrorCode::internal, error.what()));
      }
    });
  }

  void keep_generic(KernelTable::Entry& entry, const Error& error) noexcept {
    if (error.code() == ErrorCode::cancelled) return;
    if (error.code() == ErrorCode::no_context) {  // that of the caller is gone: another caller's may do
      kernels_.restart(entry);
      return;
    }
    background_failures_.fetch_add(1, std::memory_order_relaxed);
    // Without a compiler every problem fails alike.
    if (error.code() == ErrorCode::no_compiler && no_compiler_reported_.exchange(true)) return;
    base::report(options_.log, LogLevel::warning,
                 "jitsoftmax: the generic kernel goes on serving " + plan::describe(entry.problem) +
                     ", since the exact one cannot be made: " + error.what());
  }

  // The generic kernel has the entry of no columns.
  KernelTable::Entry& generic_entry(Problem problem, int device) {
    problem.cols = 0;
    return kernels_.entry(problem, device);
  }

  // For a worker: the engine's own, or the calling thread's.
  [[nodiscard]] CUcontext context_to_work_in() const {
    if (options_.device.kind() != Device::Kind::current) return context();
    (void)cuda::current_device();  // throws where there is none
    return cuda::current_context();
  }

  [[noreturn]] static void stop_making(const Problem& problem) {
    throw Error(ErrorCode::cancelled, "the engine was destroyed, or its process forked, before the kernel for " +
                                          plan::describe(problem) + " was made; keep it until the future is ready");
  }

  // One make a problem and device at a time, however many threads ask.
  std::shared_ptr<const Executable> make(KernelTable::Entry& entry) {
    if (auto present = kernels_.exact(entry)) return present;
    return flights_.run({entry.problem, entry.device}, [&]() -> std::shared_ptr<const Executable> {
      if (auto present = kernels_.exact(entry)) return present;
      auto made = make_executable(entry.problem, entry.device);
      kernels_.set_exact(entry, made);
      return made;
    });
  }

  std::shared_ptr<const Executable> make_executable(const Problem& problem, int device) {
    if (device == host_device) return std::make_shared<const HostExecutable>(problem, options_.masked_rows);
    const Arch arch = cuda::architecture(device);
    if (problem.cols == 0) return make_cuda_executable(problem, plan::generic_bundle(problem, arch), arch);
    plan::Bundle built_in = plan::choose(problem, arch, options_.variant, options_.deterministic);
    if (options_.use_records && options_.variant.empty() && !options_.deterministic) {
      const plan::Tuned picks = recorded_picks(records_, problem, built_in, device);
      if (picks.few || picks.many) {
        try {
          return make_cuda_executable(problem, plan::with_picks(built_in, picks), arch);
        } catch (const Error& error) {
          if (error.code() == ErrorCode::cancelled) throw;
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
      if (background_.stopping()) stop_making(problem);
      Code::Result code = code_.get(specialization, arch, Code::Purpose::launch);
      loaded.push_back(load_or_replace(code_, std::move(code), specialization, arch, Code::Purpose::launch,
                                       [&](const jit::Cubin& cubin) { return timed_load(specialization, cubin); }));
      loaded_.fetch_add(1, std::memory_order_relaxed);
      if (specialization.origin == Origin::record) ++tuned;
    }
    tuned_.fetch_add(tuned, std::memory_order_relaxed);
    const bool programmatic = options_.programmatic_launch && arch.major >= 9;
    auto executable = std::make_shared<CudaExecutable>(problem, options_.masked_rows, programmatic, std::move(bundle),
                                                       std::move(loaded), context_);
    if (kernels_.has_limit() && problem.cols != 0) executable->follow_launches();
    return executable;
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
  cache::SingleFlight<FlightKey, std::shared_ptr<const Executable>, FlightHash> flights_;
  std::mutex tuning_;
  std::atomic<std::uint64_t> loaded_{0};
  std::atomic<std::uint64_t> tuned_{0};
  std::atomic<std::uint64_t> load_nanoseconds_{0};
  std::atomic<std::uint64_t> background_made_{0};
  std::atomic<std::uint64_t> background_failures_{0};
  std::atomic<bool> no_compiler_reported_{false};
  const bool generic_first_ = serves_generic_first(options_);
  Background background_;  // the last: its workers use all of the above
};

Engine::Engine(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Kernel Engine::prepare(const Problem& problem) { return Kernel(impl_->prepare(problem)); }

std::future<Kernel> Engine::prepare_async(const Problem& problem) { return impl_->prepare_async(problem); }

void Engine::prepare_generic(const Problem& problem) { impl_->prepare_generic(problem); }

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
