#include "tune/record.hpp"

#include <algorithm>

#include "plan/specialization.hpp"

namespace jitsoftmax::tune {
namespace {

// By how much the times of `other` are to be multiplied to be on the scale of `base`.
double scale_between(const Record& base, const Record& other) {
  // Finalists first: they were timed for longer.
  for (const bool finalist : {true, false}) {
    for (const RecordEntry& entry : base.entries) {
      if (!entry.rejected.empty() || entry.finalist != finalist) continue;
      const RecordEntry* const same = other.find(entry.specialization);
      if (same != nullptr && same->rejected.empty()) return entry.seconds.median / same->seconds.median;
    }
  }
  return 1;
}

}  // namespace

std::string describe(const RecordKey& key) {
  std::string text = plan::describe(key.problem);
  text.append(", ").append(plan::name_of(key.bucket)).append(" rows, on ").append(key.device);
  return text.append(" with a driver of CUDA ").append(std::to_string(key.driver_major));
}

const RecordEntry* Record::find(const std::string& specialization) const noexcept {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const RecordEntry& entry) { return entry.specialization == specialization; });
  return found == entries.end() ? nullptr : &*found;
}

Record merge(const Record& first, const Record& second) {
  const bool second_holds = second.effort > first.effort;
  Record result = second_holds ? second : first;
  const Record& other = second_holds ? first : second;
  const double scale = scale_between(result, other);
  for (RecordEntry entry : other.entries) {
    if (result.find(entry.specialization) != nullptr) continue;
    entry.seconds.median *= scale;
    entry.seconds.p10 *= scale;
    entry.seconds.p90 *= scale;
    result.entries.push_back(std::move(entry));
  }
  std::sort(result.entries.begin(), result.entries.end(),
            [](const RecordEntry& a, const RecordEntry& b) { return a.specialization < b.specialization; });
  return result;
}

const RecordEntry* winner(const Record& record, const std::string& built_in) {
  std::vector<Contender> finalists;
  for (const RecordEntry& entry : record.entries) {
    if (entry.finalist && entry.rejected.empty()) finalists.push_back({entry.specialization, entry.seconds.median});
  }
  if (finalists.empty()) return nullptr;
  return record.find(finalists[fastest(finalists, built_in)].name);
}

std::vector<std::string> to_time(const std::vector<std::string>& candidates, const std::string& built_in,
                                 const std::optional<Record>& record, TuneEffort effort) {
  const bool usable = record && record->effort >= effort;
  const RecordEntry* const incumbent = usable ? winner(*record, built_in) : nullptr;
  const std::string anchor = incumbent != nullptr ? incumbent->specialization : built_in;
  std::vector<std::string> names{anchor};
  for (const std::string& name : candidates) {
    const bool known = usable && record->find(name) != nullptr;
    if (!known && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (incumbent != nullptr && names.size() == 1) names.clear();
  return names;
}

}  // namespace jitsoftmax::tune
