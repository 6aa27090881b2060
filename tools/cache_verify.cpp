// `jitsoftmax cache verify`: whether the cache's entries are in order, or all there that shapes need.
#include <spdlog/fmt/fmt.h>

#include <array>
#include <utility>

#include "api/warmup.hpp"
#include "cache.hpp"
#include "cache/check.hpp"
#include "cache/key.hpp"
#include "cache/store.hpp"
#include "cache/walk.hpp"
#include "exit_code.hpp"
#include "jit/source.hpp"
#include "print_json.hpp"
#include "run_report.hpp"
#include "shapes.hpp"

namespace jitsoftmax::tools {
namespace {

// Indexed by cache::Condition; what is gone is not counted.
constexpr std::array conditions{"valid", "other_version", "damaged", "refused", "unreadable"};

constexpr std::size_t index_of(cache::Condition condition) noexcept { return static_cast<std::size_t>(condition); }

struct Bad {
  std::string path;
  std::string condition;
  std::string reason;
};

int verify_entries(const CacheRequest& request) {
  std::array<std::size_t, conditions.size()> counts{};
  std::vector<Bad> bad;
  const Options options = request.engine.options();
  for (const CacheDirectory& directory : cache_directories(options)) {
    const cache::Contents contents = cache::walk(directory.path, base::file_system(), options.trusted_owners);
    for (const cache::Fault& fault : contents.faults) bad.push_back({fault.path, "not looked into", fault.reason});
    for (const std::string& path : contents.entries) {
      cache::Checked checked = cache::check(path, base::file_system(), options.trusted_owners);
      if (checked.condition == cache::Condition::gone) continue;
      const std::size_t index = index_of(checked.condition);
      ++counts[index];
      if (checked.condition == cache::Condition::valid || checked.condition == cache::Condition::other_version)
        continue;
      bad.push_back({path, conditions[index], std::move(checked.reason)});
    }
  }
  if (request.json) {
    Json json;
    for (std::size_t i = 0; i < conditions.size(); ++i) json[conditions[i]] = counts[i];
    json["faults"] = Json::array();
    for (const Bad& item : bad)
      json["faults"].push_back({{"path", item.path}, {"condition", item.condition}, {"reason", item.reason}});
    print(json);
  } else {
    std::size_t all = 0;
    for (const std::size_t count : counts) all += count;
    for (const Bad& item : bad) fmt::print("{}: {}: it {}\n", item.condition, item.path, item.reason);
    fmt::print("{}: {} valid, {} of another version, {} damaged, {} refused, {} unreadable; nothing was changed\n",
               plural(all, "entry"), counts[0], counts[1], counts[2], counts[3], counts[4]);
  }
  return bad.empty() ? exit_code::done : exit_code::incomplete;
}

int verify_shapes(const CacheRequest& request) {
  const std::vector<Problem> problems = problems_of(read_shapes(request.shapes));
  const std::vector<Arch> archs = archs_named(request.archs);
  const Options options = request.engine.options();
  cache::Store store(store_options(options));
  const std::vector<WarmupWork> needed = list_work(options, problems, archs);
  std::vector<WarmupItem> missing;
  for (const WarmupWork& work : needed) {
    const jit::Program program = jit::program(work.specialization, work.item.arch);
    if (!store.find(cache::key_of(program, jit::templates()), program)) missing.push_back(work.item);
  }
  if (request.json) {
    Json json{{"specializations", needed.size()}, {"missing", Json::array()}};
    for (const WarmupItem& item : missing)
      json["missing"].push_back({{"specialization", item.specialization}, {"arch", item.arch.name()}});
    if (!missing.empty()) json["command"] = warmup_command(request);
    print(json);
  } else if (missing.empty()) {
    fmt::print("all {} are in {}\n", needed.size(), describe_cache(options));
  } else {
    for (const WarmupItem& item : missing) fmt::print("missing: {}\n", describe(item));
    fmt::print("{} of {} missing; add them with: {}\n", missing.size(), plural(needed.size(), "specialization"),
               warmup_command(request));
  }
  return missing.empty() ? exit_code::done : exit_code::incomplete;
}

}  // namespace

int cache_verify(const CacheRequest& request) {
  return request.shapes.empty() ? verify_entries(request) : verify_shapes(request);
}

}  // namespace jitsoftmax::tools
