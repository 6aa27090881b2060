/// @file
/// Engine: turns problems into kernels. Finds them in memory, in the cache directories, or compiles
/// them, and keeps what it has made.
///
/// Threads: every member function may be called from any number of threads at once. A launch of a
/// kernel that is ready waits for no lock that a compile can hold. The library prints nothing.
#pragma once

#include <jitsoftmax/export.h>

#include <cstdint>
#include <functional>
#include <future>
#include <jitsoftmax/error.hpp>
#include <jitsoftmax/kernel.hpp>
#include <jitsoftmax/problem.hpp>
#include <jitsoftmax/tuning.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace jitsoftmax {

/// A GPU architecture, as NVRTC names it: sm_90 is {9, 0}, sm_100a is {10, 0, 'a'}.
struct JITSOFTMAX_API Arch {
  int major = 0;    ///< 9 of sm_90
  int minor = 0;    ///< 0 of sm_90
  char suffix = 0;  ///< 0, 'a' or 'f'

  /// Reads "sm_90", "sm_90a", "sm_100f"; throws invalid_argument for anything else.
  static Arch parse(const std::string& name);
  /// What parse() reads.
  [[nodiscard]] std::string name() const;

  /// Whether all members are equal.
  friend constexpr bool operator==(const Arch& a, const Arch& b) noexcept {
    return a.major == b.major && a.minor == b.minor && a.suffix == b.suffix;
  }
  /// Whether any differs.
  friend constexpr bool operator!=(const Arch& a, const Arch& b) noexcept { return !(a == b); }
};

/// Where kernels run, and so what the pointers in Rows are.
class JITSOFTMAX_API Device {
 public:
  /// Which of the three.
  enum class Kind : std::uint8_t {
    current,  ///< the caller's current context
    cuda,     ///< the primary context of a device
    host,     ///< the CPU
  };

  /// The caller's current context.
  static constexpr Device current() noexcept { return {Kind::current, 0}; }
  /// The primary context of a device, which the engine retains.
  static constexpr Device cuda(int ordinal) noexcept { return {Kind::cuda, ordinal}; }
  /// The CPU. Pointers are the host's.
  static constexpr Device host() noexcept { return {Kind::host, 0}; }

  /// Reads "current", "cuda:N", "host"; throws invalid_argument for anything else.
  static Device parse(const std::string& name);

  /// Which of the three.
  [[nodiscard]] constexpr Kind kind() const noexcept { return kind_; }
  /// n of cuda(n), else 0.
  [[nodiscard]] constexpr int ordinal() const noexcept { return ordinal_; }

 private:
  constexpr Device(Kind kind, int ordinal) noexcept : kind_(kind), ordinal_(ordinal) {}
  Kind kind_;
  int ordinal_;
};

/// What a row of -inf only becomes. (A row with a NaN or +inf is NaN throughout, in both modes.)
enum class MaskedRows : std::uint8_t {
  nan,   ///< as PyTorch
  zero,  ///< zeros; for log_softmax their logarithm, -inf
};

/// What happens when a kernel is in no cache.
enum class OnMiss : std::uint8_t {
  compile,  ///< the caller waits until the exact kernel is there
  /// softmax() runs the generic kernel, which takes any row length, until the exact one is compiled
  background,
  fail,  ///< ErrorCode::not_cached: for images that must not compile
};

/// How much a message matters.
enum class LogLevel : std::uint8_t {
  debug,    ///< for those who look into the library
  info,     ///< for those who want to know
  warning,  ///< something is not as it should be, and results are right all the same
  error,    ///< something failed
};

/// Called from any thread, also from several at once; must not throw.
using Log = std::function<void(LogLevel, const std::string& message)>;

/// A fixed choice of kernel instead of the built-in one, for people who compare variants. Unset
/// fields are chosen by the named variant, or by the library where there is no name. A choice that
/// cannot serve a problem is invalid_argument, with the reason.
struct Variant {
  std::string name = {};  ///< "safe3", "v0" ... "v4", "generic"; empty: by the fields below
  /// "safe", "looped", "registers", "staged", "split", "strided", "strided_registers",
  /// "strided_staged"
  std::optional<std::string> family = {};
  std::optional<int> threads = {};   ///< threads a row
  std::optional<int> rows = {};      ///< rows a block
  std::optional<int> cluster = {};   ///< blocks a row (sm_90 and newer)
  std::optional<int> vector = {};    ///< elements an access
  std::optional<int> elements = {};  ///< elements a thread holds at a time
  std::optional<int> pieces = {};  ///< of what waits in shared memory: copies a block, or groups of 8 columns a thread
  std::optional<int> resident = {};      ///< blocks a multiprocessor that the registers are to allow
  std::optional<bool> packed = {};       ///< registers: hold the bits that were read instead of numbers
  std::optional<bool> low_latency = {};  ///< registers, in a cluster: agree in less time, for few rows
  std::optional<bool> staggered = {};    ///< in a cluster: the rows with which a launch begins are read in turn

  /// Whether nothing is set: the library chooses.
  [[nodiscard]] bool empty() const noexcept {
    return name.empty() && !family && !threads && !rows && !cluster && !vector && !elements && !pieces && !resident &&
           !packed && !low_latency && !staggered;
  }
};

/// What an engine is made with. A plain value; the engine keeps a copy.
struct JITSOFTMAX_API Options {
  Device device = Device::current();         ///< where kernels run
  OnMiss on_miss = OnMiss::compile;          ///< what to do about a kernel that is in no cache
  MaskedRows masked_rows = MaskedRows::nan;  ///< what a row of -inf only becomes
  /// Same bits for the same row whatever the number of rows, alignment, records or run.
  bool deterministic = false;
  Variant variant;  ///< empty: the library chooses
  /// Kernels are those that tuning records pick (autotune), where there are records for the GPU at hand.
  /// A deterministic engine, or one with a variant, uses none in any case.
  bool use_records = true;

  /// The one writable cache directory. Unset: $XDG_CACHE_HOME/jitsoftmax, then ~/.cache/jitsoftmax;
  /// empty: none, kernels are kept in memory only. It is created, mode 0700, on the first write.
  std::optional<std::string> cache_dir;
  /// Read-only directories that are looked up before it, in this order.
  std::vector<std::string> cache_layers;
  /// The most bytes that its kernels may take; unset: any number. After a write the least recently used
  /// are removed, as few as it takes; a kernel larger than the limit is not kept.
  std::optional<std::int64_t> cache_limit;

  /// Users, by id, whose files in these directories are used as if this user or root had written them.
  std::vector<std::uint32_t> trusted_owners;

  /// Of OnMiss::background. A problem is compiled when so many softmax() have asked for it: 1 compiles what is
  /// asked for once, too.
  std::int64_t specialize_after = 2;
  int workers = 0;  ///< compiles in the background at once; 0: a quarter of the cores, 1 to 4
  /// The most problems whose kernels stay loaded; unset: any number. Beyond it those that were not used for the
  /// longest are unloaded, when nothing of them is on the device any more, but never what a Kernel holds or what
  /// was launched into a graph; one that is asked for again is loaded again. Generic kernels do not count. A launch
  /// then costs more, since an event follows it.
  std::optional<std::size_t> max_kernels;

  /// A kernel of this engine may begin while the kernel before it on the stream is still running, whoever launched
  /// that, and waits for its end before it touches memory: the time that a launch takes is hidden behind it. For
  /// small problems one after the other. Meanwhile its blocks hold room on the device that another stream could
  /// use. Without effect before sm_90, for a row over blocks all over the device, and for what an autotune times.
  /// A captured launch keeps it, as an edge of the graph that says so (CUDA 12.3 and newer).
  bool programmatic_launch = false;

  std::string nvrtc;  ///< path of libnvrtc; empty: the usual places
  Log log;            ///< none: silent

  /// Defaults, overridden by JITSOFTMAX_DEVICE, JITSOFTMAX_ON_MISS, JITSOFTMAX_CACHE_DIR,
  /// JITSOFTMAX_CACHE_LAYERS (colon-separated), JITSOFTMAX_CACHE_LIMIT (500000, 64MB, none),
  /// JITSOFTMAX_TRUSTED_OWNERS (names or ids, comma-separated), JITSOFTMAX_PROGRAMMATIC_LAUNCH (true, false) and
  /// JITSOFTMAX_NVRTC. The environment is read here and at no other time. Throws invalid_argument for a value that
  /// cannot be understood.
  static Options from_environment();
};

/// Counters since the engine was made. A snapshot: taken while others work, the fields may be a
/// moment apart. Launches of what is ready are not counted: threads would share a counter for it.
struct Stats {
  std::uint64_t kernels = 0;              ///< specializations loaded or compiled by this engine
  std::uint64_t tuned_kernels = 0;        ///< of these, picked by a tuning record in the place of the built-in choice
  std::uint64_t disk_hits = 0;            ///< of these, found in a cache directory
  std::uint64_t compiles = 0;             ///< of these, compiled
  std::uint64_t compile_failures = 0;     ///< compiles that failed
  std::uint64_t rejected_entries = 0;     ///< damaged, untrusted or refused by the driver, in a cache directory
  std::vector<std::string> cache_faults;  ///< why, and what else was reported of the directories; each once
  double compile_seconds = 0;             ///< summed over threads
  double load_seconds = 0;                ///< reading, verifying and handing cubins to the driver
  std::uint64_t evictions = 0;            ///< problems whose kernels were unloaded (Options::max_kernels)
  std::uint64_t background_made = 0;      ///< problems whose exact kernels came in the background
  std::uint64_t background_failures = 0;  ///< problems that stay with the generic kernel
  std::uint64_t background_waiting = 0;   ///< of this moment: jobs that have not begun
};

/// What became of one specialization.
enum class WarmupOutcome : std::uint8_t {
  cached,    ///< it was there
  compiled,  ///< it was compiled
  failed,    ///< it is not there: see WarmupItem::error
};

/// One specialization for one architecture.
struct WarmupItem {
  Problem problem;                                ///< that needs it, perhaps beside others
  Arch arch;                                      ///< that it is compiled for
  std::string specialization;                     ///< canonical spelling
  WarmupOutcome outcome = WarmupOutcome::failed;  ///< what became of it
  double seconds = 0;                             ///< that it took
  std::string error;                              ///< why it failed
};

/// What came of a warmup.
struct WarmupReport {
  std::vector<WarmupItem> items;  ///< in the order of problems, architectures, specializations
  /// How many items came to that.
  [[nodiscard]] std::size_t count(WarmupOutcome outcome) const noexcept {
    std::size_t n = 0;
    for (const WarmupItem& item : items) n += item.outcome == outcome ? 1 : 0;
    return n;
  }
};

/// How to warm up.
struct WarmupOptions {
  /// Compiles at once, in threads; 0: as many as there are cores. NVRTC lets one thread at a time do a part of each
  /// compile: of more than about four none gains anything. The program has processes instead.
  int jobs = 0;
  /// Compile again what an NVRTC of another version made. What a read-only layer has fails: it comes before
  /// anything that could be written.
  bool refresh = false;
  /// Called after each item, from one thread at a time; returning false stops before the next item.
  std::function<bool(const WarmupItem& item, std::size_t done, std::size_t total)> progress;
};

/// Finds, makes and keeps kernels. Movable; its kernels may outlive it. An engine that was moved from can only be
/// destroyed or assigned to.
class JITSOFTMAX_API Engine {
 public:
  /// Opens no library, makes no context and creates no directory (Device::cuda(n) does open libcuda
  /// and retains the primary context of device n).
  explicit Engine(Options options = Options::from_environment());
  ~Engine();
  /// No thread may be using either. ~Engine waits for compiles that run in the background, and drops those that wait.
  Engine(Engine&&) noexcept;
  /// Likewise.
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The kernel for a problem: loads or compiles its whole bundle now, so that no later launch
  /// waits. Throws Error; a failure is not remembered.
  Kernel prepare(const Problem& problem);

  /// prepare() by one of Options::workers, for a server's start: errors come from the future. For
  /// Device::current in the calling thread's current context, which must live until then. An engine that is
  /// destroyed before it is done gives ErrorCode::cancelled.
  std::future<Kernel> prepare_async(const Problem& problem);

  /// Loads or compiles the generic kernel for the types, operation and layout of the problem, whatever its
  /// columns: with OnMiss::background the first softmax() of their kind would wait for that otherwise.
  void prepare_generic(const Problem& problem);

  /// prepare() where needed, then Kernel::launch(). While `stream` is being captured a kernel that
  /// is not prepared is an error (ErrorCode::capturing) and the capture stays valid.
  ///
  /// With OnMiss::background, prepare_generic() where needed; the generic kernel, also into a capture; and the
  /// exact one as soon as it is there. If it cannot be made, that is reported once and the generic kernel goes
  /// on. With Device::current the exact one is loaded into the context of the call that asked for it. An engine
  /// that is deterministic, or has a variant, compiles instead: the two kernels round differently.
  void softmax(const Problem& problem, const Rows& rows, Stream stream = nullptr);

  /// Compiles every specialization that the problems need on the architectures into the cache
  /// directory. Needs NVRTC, but no driver and no GPU. An item that fails is reported and does not
  /// stop the others; throws only if there is nothing to compile with or nowhere to put it.
  WarmupReport warmup(const std::vector<Problem>& problems, const std::vector<Arch>& archs,
                      const WarmupOptions& options = {});

  /// Finds the fastest specialization for so many rows of the problem on this engine's GPU, and keeps it
  /// in the cache directory: engines that prepare the problem from then on use it for all numbers of
  /// rows of the same kind, few (up to 64) or more. Candidates are compiled in parallel, verified and
  /// timed on buffers of its own, so for a moment when the GPU has nothing else to do and no stream is
  /// being captured. What a record has already is not timed again. A candidate that fails is reported and
  /// does not stop the others. Kernels that are prepared already stay what they are.
  /// Throws invalid_argument (also for an engine on the CPU, deterministic or with a variant), io_error
  /// (no cache directory), no_compiler, or driver_error if no candidate can be used.
  TuneReport autotune(const Problem& problem, std::int64_t rows, const TuneOptions& options = {});

  /// The counters as they are now.
  [[nodiscard]] Stats stats() const;

  /// What the engine was made with.
  [[nodiscard]] const Options& options() const noexcept;

  class Impl;  // internal: shared by the threads that use this engine

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace jitsoftmax
