#include "api/warmup.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "api/miss.hpp"
#include "plan/choice.hpp"
#include "plan/launch.hpp"

namespace jitsoftmax {
namespace {

// Errors that concern every item alike: there is no point in going on.
bool is_fatal(ErrorCode code) noexcept { return code == ErrorCode::no_compiler || code == ErrorCode::io_error; }

class WarmUp {
 public:
  WarmUp(Code& code, std::vector<WarmupWork>& work, const WarmupOptions& options)
      : code_(code), work_(work), options_(options) {}

  void run() {
    const std::size_t wanted =
        options_.jobs > 0 ? static_cast<std::size_t>(options_.jobs) : std::max(1U, std::thread::hardware_concurrency());
    {
      std::vector<std::jthread> workers;
      for (std::size_t i = 1; i < std::min(wanted, work_.size()); ++i) workers.emplace_back([this] { take_items(); });
      take_items();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void take_items() {
    while (!stop_.load()) {
      const std::size_t i = next_.fetch_add(1);
      if (i >= work_.size()) return;
      try {
        warm_up(code_, work_[i], options_.refresh);
        finish(work_[i].item);
      } catch (...) {
        const std::lock_guard lock(reporting_);
        if (!failure_) failure_ = std::current_exception();
        stop_.store(true);
      }
    }
  }

  void finish(const WarmupItem& item) {
    const std::lock_guard lock(reporting_);
    ++done_;
    if (options_.progress && !options_.progress(item, done_, work_.size())) stop_.store(true);
  }

  Code& code_;
  std::vector<WarmupWork>& work_;
  const WarmupOptions& options_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex reporting_;
  std::size_t done_ = 0;        // guarded by reporting_
  std::exception_ptr failure_;  // guarded by reporting_
};

}  // namespace

std::vector<WarmupWork> list_work(const Options& engine, const std::vector<Problem>& problems,
                                  const std::vector<Arch>& archs) {
  std::vector<WarmupWork> work;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Problem& problem : problems) {
    plan::check(problem);
    if (problem.cols == 0) continue;
    for (const Arch& arch : archs) {
      plan::Bundle needed = plan::choose(problem, arch, engine.variant, engine.deterministic);
      if (serves_generic_first(engine))
        for (plan::Specialization& generic : plan::generic_bundle(problem, arch)) needed.push_back(std::move(generic));
      for (const plan::Specialization& specialization : needed) {
        std::string name = plan::name_expression(specialization);
        if (!seen.emplace(name, arch.name()).second) continue;
        WarmupItem item;
        item.problem = problem;
        item.arch = arch;
        item.specialization = std::move(name);
        item.error = "not reached";
        work.push_back({specialization, std::move(item)});
      }
    }
  }
  return work;
}

void warm_up(Code& code, WarmupWork& work, bool refresh) {
  if (code.store().options().directory.empty()) {
    throw Error(ErrorCode::io_error,
                "nowhere to put compiled kernels: no cache directory; set JITSOFTMAX_CACHE_DIR or HOME");
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    const Code::Purpose purpose = refresh ? Code::Purpose::refresh : Code::Purpose::warmup;
    const bool compiled = code.get(work.specialization, work.item.arch, purpose).compiled;
    work.item.outcome = compiled ? WarmupOutcome::compiled : WarmupOutcome::cached;
    work.item.error.clear();
  } catch (const Error& error) {
    if (is_fatal(error.code())) throw;
    work.item.outcome = WarmupOutcome::failed;
    work.item.error = error.what();
  }
  work.item.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

WarmupReport warm_up(Code& code, const Options& engine, const std::vector<Problem>& problems,
                     const std::vector<Arch>& archs, const WarmupOptions& options) {
  std::vector<WarmupWork> work = list_work(engine, problems, archs);
  WarmUp(code, work, options).run();

  WarmupReport report;
  report.items.reserve(work.size());
  for (WarmupWork& w : work) report.items.push_back(std::move(w.item));
  return report;
}

}  // namespace jitsoftmax
