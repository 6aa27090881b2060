#include "api/autotune.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/device_workshop.hpp"
#include "cuda/device.hpp"
#include "cuda/driver.hpp"
#include "cuda/memory.hpp"
#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "tune/fit.hpp"
#include "tune/instruments.hpp"
#include "tune/tuner.hpp"

namespace jitsoftmax {
namespace {

constexpr std::int64_t rotations = 4;  // of the L2 cache, that all buffers together take at least

struct Pace {
  tune::SearchOptions search;
  double seconds = 0;  // that one measurement lasts at least
};
Pace pace_of(TuneEffort effort) noexcept {
  return effort == TuneEffort::full ? Pace{{.first_rounds = 3, .finalists = 8, .final_rounds = 21}, 2e-3}
                                    : Pace{{.first_rounds = 2, .finalists = 5, .final_rounds = 11}, 1e-3};
}

// As many of the rows as two sets of buffers in half of the free memory hold, and of the same kind.
tune::Shape shape_for(const Problem& problem, std::int64_t rows) {
  tune::Shape shape{.problem = problem, .rows = 1};
  const auto room = static_cast<std::int64_t>(cuda::free_device_bytes() / 4);
  shape.rows = std::max<std::int64_t>(1, std::min(rows, room / shape.bytes()));
  if (problem.layout == Layout::strided) shape.inner = shape.rows;
  return shape;
}

tune::DeviceLimits limits_of(CUdevice device) {
  return {.threads = cuda::most_threads(device),
          .registers = cuda::most_registers(device),
          .shared_bytes = cuda::most_shared_bytes(device)};
}

// What this library would not make any more cannot win.
void forget_unknown_winners(tune::Record& record, const Problem& problem) {
  std::erase_if(record.entries, [&](const tune::RecordEntry& entry) {
    return entry.finalist && !plan::specialization_named(problem, entry.specialization);
  });
}

// One problem, from what its record has to what is found.
class Session {
 public:
  Session(Code& code, tune::Records& records, const tune::RecordKey& key, std::int64_t rows, CUdevice device,
          const TuneOptions& options)
      : code_(code),
        records_(records),
        key_(key),
        device_(device),
        arch_(cuda::architecture(device)),
        options_(options),
        record_(records.find(key)),
        rows_(record_ ? record_->rows : rows) {  // what is new is compared with what was measured
    built_in_ = spelled(plan::chosen_for(plan::choose(key.problem, arch_), rows_));
    for (const plan::Specialization& s : plan::candidates(key.problem, arch_)) candidates_.push_back(spelled(s));
    candidates_.push_back(built_in_);
    if (record_) forget_unknown_winners(*record_, key.problem);
  }

  TuneReport run(MaskedRows masked) {
    std::vector<std::string> names = tune::to_time(candidates_, built_in_, record_, options_.effort);
    if (!names.empty()) remember(names.front());  // the winner may be no candidate any more
    tune::Record found{.rows = rows_, .effort = options_.effort};
    rule_out(names, found);
    const bool incumbent =
        record_ && tune::winner(*record_, built_in_) != nullptr && record_->effort >= options_.effort;
    if (names.size() > (incumbent ? 1U : 0U)) measure(names, incumbent, masked, found);
    if (!report_.stopped) {
      keep(found);
      if (tune::winner(*record_, built_in_) == nullptr) refuse(*record_);
    }
    return describe();
  }

 private:
  // Remembers what the spelling stands for.
  std::string spelled(const plan::Specialization& specialization) {
    std::string name = plan::name_expression(specialization);
    known_.emplace(name, specialization);
    return name;
  }
  void remember(const std::string& name) {
    if (known_.contains(name)) return;
    if (const auto specialization = plan::specialization_named(key_.problem, name))
      known_.emplace(name, *specialization);
  }

  // Without compiling.
  void rule_out(std::vector<std::string>& names, tune::Record& found) const {
    const tune::DeviceLimits limits = limits_of(device_);
    std::erase_if(names, [&](const std::string& name) {
      std::string reason = tune::unfit(known_.at(name), limits);
      if (reason.empty()) return false;
      found.entries.push_back({.specialization = name, .rejected = std::move(reason)});
      return true;
    });
  }

  void measure(const std::vector<std::string>& names, bool incumbent, MaskedRows masked, tune::Record& found) {
    const Pace pace = pace_of(options_.effort);
    const tune::Instruments instruments(code_.compiler(), arch_);
    const tune::Shape shape = shape_for(key_.problem, found.rows);
    found.rows = shape.rows;
    const auto rotate = static_cast<std::int64_t>(cuda::l2_bytes(device_)) * rotations;
    std::vector<plan::Specialization> specializations;
    specializations.reserve(names.size());
    for (const std::string& name : names) specializations.push_back(known_.at(name));
    tune::TunerOptions how{.search = pace.search, .anchor_known = incumbent};
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    how.jobs = options_.jobs > 0 ? options_.jobs : std::max(1, cores - 1);
    DeviceWorkshop workshop(code_, key_.problem, specializations, how.jobs, arch_, limits_of(device_), masked,
                            tune::RotatedBuffers(instruments, shape, rotate), pace.seconds, records_.options().log);
    how.progress = [&](std::size_t candidate, std::size_t done) {
      return !options_.progress || options_.progress({names[candidate], done, names.size()});
    };
    const tune::Findings findings = tune::rank(workshop, names.size(), how);
    report_.stopped = findings.stopped;
    for (const tune::Ranked& ranked : findings.ranking) {
      timed_.push_back(names[ranked.candidate]);
      found.entries.push_back(
          {.specialization = names[ranked.candidate], .seconds = ranked.seconds, .finalist = ranked.finalist});
    }
    for (const tune::Dropped& dropped : findings.dropped) {
      const std::string& name = names[dropped.candidate];
      if (dropped.for_good) {
        found.entries.push_back({.specialization = name, .rejected = dropped.why});
      } else {
        TuneItem item;
        item.specialization = name;
        item.rejected = dropped.why;
        item.failed = true;
        failed_.push_back(std::move(item));
      }
    }
  }

  void keep(const tune::Record& found) {
    if (found.entries.empty() && record_) {
      report_.kept = true;
      return;
    }
    record_ = record_ ? tune::merge(*record_, found) : found;
    std::optional<tune::Record> kept = records_.add(key_, *record_);
    report_.kept = kept.has_value();
    if (kept) record_ = std::move(kept);
  }

  [[noreturn]] void refuse(const tune::Record& record) const {
    throw Error(ErrorCode::driver_error,
                "autotune of " + plan::describe(key_.problem) + ": no kernel can be used on " + key_.device +
                    (record.entries.empty()
                         ? ""
                         : "; " + record.entries.front().specialization + " " + record.entries.front().rejected));
  }

  TuneReport describe() {
    report_.problem = key_.problem;
    report_.few_rows = key_.bucket == plan::RowsBucket::few;
    report_.device = key_.device;
    report_.built_in = built_in_;
    if (!record_) return std::move(report_);
    report_.rows = record_->rows;
    const tune::RecordEntry* const best = tune::winner(*record_, built_in_);
    if (best != nullptr) report_.winner = best->specialization;
    for (const tune::RecordEntry& entry : record_->entries) {
      TuneItem item;
      item.specialization = entry.specialization;
      item.median = entry.seconds.median;
      item.p10 = entry.seconds.p10;
      item.p90 = entry.seconds.p90;
      item.rounds = entry.seconds.rounds;
      item.timed = std::find(timed_.begin(), timed_.end(), entry.specialization) != timed_.end();
      item.rejected = entry.rejected;
      report_.items.push_back(std::move(item));
    }
    std::stable_sort(report_.items.begin(), report_.items.end(), [&](const TuneItem& a, const TuneItem& b) {
      const auto rank = [&](const TuneItem& i) {
        return !i.rejected.empty() ? 2 : i.specialization == report_.winner ? 0 : 1;
      };
      return rank(a) != rank(b) ? rank(a) < rank(b) : a.median < b.median;
    });
    for (TuneItem& item : failed_) report_.items.push_back(std::move(item));
    return std::move(report_);
  }

  Code& code_;
  tune::Records& records_;
  tune::RecordKey key_;
  CUdevice device_;
  Arch arch_;
  const TuneOptions& options_;
  std::optional<tune::Record> record_;
  std::int64_t rows_;
  std::unordered_map<std::string, plan::Specialization> known_;  // by spelling
  std::string built_in_;
  std::vector<std::string> candidates_;
  std::vector<std::string> timed_;
  std::vector<TuneItem> failed_;
  TuneReport report_;
};

}  // namespace

tune::RecordKey record_key(const Problem& problem, plan::RowsBucket bucket, CUdevice device) {
  int version = 0;  // 13000: CUDA 13.0
  cuda::check(cuda::driver().DriverGetVersion(&version), "cuDriverGetVersion");
  return {.problem = problem, .bucket = bucket, .device = cuda::device_name(device), .driver_major = version / 1000};
}

std::optional<plan::Specialization> pick_of(tune::Record record, const tune::RecordKey& key,
                                            const plan::Bundle& built_in) {
  forget_unknown_winners(record, key.problem);
  const std::string chosen = plan::name_expression(plan::chosen_for(built_in, record.rows));
  const tune::RecordEntry* const best = tune::winner(record, chosen);
  return best != nullptr ? plan::specialization_named(key.problem, best->specialization) : std::nullopt;
}

plan::Tuned recorded_picks(tune::Records& records, const Problem& problem, const plan::Bundle& built_in,
                           CUdevice device) {
  plan::Tuned tuned;
  const auto pick = [&](plan::RowsBucket bucket) -> std::optional<plan::Specialization> {
    const tune::RecordKey key = record_key(problem, bucket, device);
    std::optional<tune::Record> record = records.find(key);
    if (!record) return std::nullopt;
    if (bucket == plan::RowsBucket::many) tuned.many_rows = record->rows;
    return pick_of(*std::move(record), key, built_in);
  };
  tuned.few = pick(plan::RowsBucket::few);
  tuned.many = pick(plan::RowsBucket::many);
  return tuned;
}

TuneReport autotune(Code& code, tune::Records& records, MaskedRows masked, const Problem& problem, std::int64_t rows,
                    CUdevice device, const TuneOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Session session(code, records, record_key(problem, plan::bucket_of(rows), device), rows, device, options);
  TuneReport report = session.run(masked);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace jitsoftmax
