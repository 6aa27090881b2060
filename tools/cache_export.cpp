// `jitsoftmax cache export`: kernels and tuning records of the cache directories, in one file.
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "api/autotune.hpp"
#include "api/warmup.hpp"
#include "cache.hpp"
#include "cache/check.hpp"
#include "cache/pack.hpp"
#include "cache/store.hpp"
#include "cache/walk.hpp"
#include "exit_code.hpp"
#include "interrupt.hpp"
#include "jit/source.hpp"
#include "output_file.hpp"
#include "plan/choice.hpp"
#include "print_json.hpp"
#include "run_report.hpp"
#include "shapes.hpp"
#include "tune/records.hpp"

namespace jitsoftmax::tools {
namespace {

class Export {
 public:
  explicit Export(const CacheRequest& request)
      : options_(request.engine.options()),
        archs_(archs_named(request.archs)),
        store_(store_options(options_)),
        templates_(cache::digest_of(jit::templates()).hex()) {}

  // Every kernel of the architectures, or of all where there are none.
  void add_everything() {
    for (const CacheDirectory& directory : cache_directories(options_)) {
      cache::Contents contents = cache::walk(directory.path, base::file_system(), options_.trusted_owners);
      std::ranges::move(contents.faults, std::back_inserter(faults_));
      for (const std::string& path : contents.entries) add_file(path);
    }
    for (const tune::KeyedRecord& record : records()) add(record);
  }

  // What the problems need, and what their tuning records picked. Returns what is not there.
  std::vector<WarmupItem> add_problems(const std::vector<Problem>& problems) {
    std::vector<WarmupItem> missing;
    for (const WarmupWork& work : list_work(options_, problems, archs_))
      if (!add(work.specialization, work.item.arch)) missing.push_back(work.item);
    for (const tune::KeyedRecord& record : records()) {
      if (std::ranges::find(problems, record.key.problem) == problems.end()) continue;
      add(record);
      add_winner(record);
    }
    return missing;
  }

  [[nodiscard]] std::vector<char> bytes() const { return cache::serialize_pack(entries_, records_); }
  [[nodiscard]] std::size_t kernels() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t record_count() const noexcept { return records_.size(); }
  [[nodiscard]] const std::set<std::string>& arch_names() const noexcept { return arch_names_; }
  // Records whose winner is in the cache for none of the architectures.
  [[nodiscard]] std::size_t winners_missing() const noexcept { return winners_missing_; }
  // What is in the directories and was passed over.
  [[nodiscard]] const std::vector<cache::Fault>& faults() const noexcept { return faults_; }

 private:
  bool wanted(const Arch& arch) const { return archs_.empty() || std::ranges::find(archs_, arch) != archs_.end(); }

  void add_file(const std::string& path) {
    cache::Checked checked = cache::check(path, base::file_system(), options_.trusted_owners);
    if (checked.condition == cache::Condition::valid) {
      const cache::Description& entry = *checked.entry;
      if (wanted(entry.program.arch)) add(entry.key, entry.program, entry.cubin);
    } else if (checked.condition != cache::Condition::gone && checked.condition != cache::Condition::other_version) {
      faults_.push_back({path, std::move(checked.reason)});
    }
  }

  // The first is what a load takes.
  void add(const cache::Key& key, const jit::Program& program, const jit::Cubin& cubin) {
    if (entries_.contains(key)) return;
    entries_.emplace(key, cache::serialize(key, program, cubin));
    arch_names_.insert(program.arch.name());
  }

  // False: it is in no directory.
  bool add(const plan::Specialization& specialization, const Arch& arch) {
    const jit::Program program = jit::program(specialization, arch);
    const cache::Key key = cache::key_of(program, jit::templates());
    const auto cubin = store_.find(key, program);
    if (cubin) add(key, program, *cubin);
    return cubin.has_value();
  }

  // In the order of look-up: the writable directory's record comes before those of the layers.
  std::vector<tune::KeyedRecord> records() const {
    std::vector<std::string> directories = store_.options().layers;
    if (!store_.options().directory.empty()) directories.insert(directories.begin(), store_.options().directory);
    std::vector<tune::KeyedRecord> all;
    std::set<std::string> seen;
    for (const std::string& directory : directories) {
      for (tune::KeyedRecord& record :
           tune::read_records(directory, templates_, base::file_system(), options_.trusted_owners))
        if (seen.insert(tune::describe(record.key)).second) all.push_back(std::move(record));
    }
    return all;
  }

  void add(const tune::KeyedRecord& record) { records_.insert(tune::to_text(record.key, templates_, record.record)); }

  // A record names its GPU and no architecture: whichever of them the GPU has, its kernels come along.
  void add_winner(const tune::KeyedRecord& record) {
    bool found = false;
    for (const Arch& arch : archs_) {
      const auto pick = pick_of(record.record, record.key, plan::choose(record.key.problem, arch));
      if (!pick) continue;
      bool all = true;
      for (const plan::Specialization& member : plan::bundle_of(*pick, false)) all = add(member, arch) && all;
      found = found || all;
    }
    if (!found) ++winners_missing_;
  }

  Options options_;
  std::vector<Arch> archs_;
  cache::Store store_;
  std::string templates_;
  std::map<cache::Key, std::vector<char>> entries_;
  std::set<std::string> records_;
  std::set<std::string> arch_names_;
  std::size_t winners_missing_ = 0;
  std::vector<cache::Fault> faults_;
};

[[noreturn]] void refuse_incomplete(const CacheRequest& request, const std::vector<WarmupItem>& missing) {
  if (request.json) {
    Json json{{"missing", Json::array()}};
    for (const WarmupItem& item : missing)
      json["missing"].push_back({{"specialization", item.specialization}, {"arch", item.arch.name()}});
    json["command"] = warmup_command(request);
    print(json);
  }
  for (const WarmupItem& item : missing)
    std::fputs(fmt::format("jitsoftmax: error: missing: {}\n", describe(item)).c_str(), stderr);
  throw Failure(exit_code::incomplete, fmt::format("nothing was written: {} missing; add with: {}",
                                                   plural(missing.size(), "kernel"), warmup_command(request)));
}

void report(const CacheRequest& request, const Export& exported, std::size_t bytes) {
  for (const cache::Fault& fault : exported.faults())
    std::fputs(fmt::format("jitsoftmax: error: not exported: {}: it {}\n", fault.path, fault.reason).c_str(), stderr);
  if (request.json) {
    Json json{{"file", request.file},
              {"bytes", bytes},
              {"kernels", exported.kernels()},
              {"architectures", exported.arch_names()},
              {"records", exported.record_count()},
              {"records_without_kernels", exported.winners_missing()},
              {"faults", Json::array()}};
    for (const cache::Fault& fault : exported.faults())
      json["faults"].push_back({{"path", fault.path}, {"reason", fault.reason}});
    print(json);
    return;
  }
  fmt::print(
      "wrote {}: {} for {} and {}, {} bytes\n", request.file, plural(exported.kernels(), "kernel"),
      exported.arch_names().empty() ? "no architecture" : fmt::format("{}", fmt::join(exported.arch_names(), ", ")),
      plural(exported.record_count(), "tuning record"), bytes);
  if (exported.winners_missing() > 0)
    fmt::print("what {} picked is not in the cache for these architectures; without it the built-in choice is used\n",
               plural(exported.winners_missing(), "tuning record"));
}

}  // namespace

int cache_export(const CacheRequest& request) {
  const InterruptScope interrupts;
  const OutputFile file(request.file);
  Export exported(request);
  if (request.shapes.empty()) {
    exported.add_everything();
  } else if (const auto missing = exported.add_problems(problems_of(read_shapes(request.shapes))); !missing.empty()) {
    refuse_incomplete(request, missing);
  }
  if (exported.kernels() + exported.record_count() == 0) {
    throw Failure(exit_code::incomplete,
                  "nothing was written: there is nothing to export in " + describe_cache(request.engine.options()));
  }
  const std::vector<char> bytes = exported.bytes();
  if (bytes.size() > std::size_t{cache::max_pack_bytes}) {
    throw Failure(exit_code::incomplete,
                  fmt::format("nothing was written: {} bytes are more than one file may have, {}; export by --arch or "
                              "--shapes",
                              bytes.size(), cache::max_pack_bytes));
  }
  file.write({std::as_bytes(std::span(bytes))});
  report(request, exported, bytes.size());
  return exported.faults().empty() ? exit_code::done : exit_code::incomplete;
}

}  // namespace jitsoftmax::tools
