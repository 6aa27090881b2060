#include "tune/search.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace jitsoftmax::tune {

Search::Search(TimeTogether time, const SearchOptions& options) : time_(std::move(time)), options_(options) {}

// Also where times are equal the order is the same in every run.
bool Search::faster(const Entry* a, const Entry* b) noexcept {
  return std::tie(a->relative.median, a->candidate) < std::tie(b->relative.median, b->candidate);
}

void Search::add(const std::vector<std::size_t>& candidates) {
  if (candidates.empty()) return;
  const std::size_t known = entries_.size();
  for (const std::size_t candidate : candidates) entries_.push_back({candidate, {}, false});
  std::vector<Entry*> field;
  for (std::size_t i = known; i < entries_.size(); ++i) field.push_back(&entries_[i]);
  measure(field, options_.first_rounds);
}

std::vector<Ranked> Search::finish() {
  if (entries_.empty()) return {};
  Entry* const anchor = &entries_.front();
  std::vector<Entry*> field;
  for (Entry& entry : entries_) field.push_back(&entry);
  // The anchor stays in whatever it is worth: the others are told by it.
  const auto keep = [&](std::size_t count) {
    std::sort(field.begin(), field.end(), faster);
    field.resize(std::min(count, field.size()));
    if (std::find(field.begin(), field.end(), anchor) == field.end()) field.push_back(anchor);
  };

  keep(field.size());
  const double slowest = options_.cut * field.front()->relative.median;
  keep(static_cast<std::size_t>(
      std::count_if(field.begin(), field.end(), [&](const Entry* e) { return e->relative.median <= slowest; })));
  for (int rounds = options_.first_rounds; field.size() > options_.finalists + 1;) {
    keep(std::max(options_.finalists, (field.size() + 1) / 2));
    if (field.size() <= options_.finalists + 1) break;
    rounds = std::min(2 * rounds, options_.final_rounds);
    measure(field, rounds);
  }
  for (Entry* entry : field) entry->finalist = true;
  measure(field, options_.final_rounds);

  std::vector<Entry*> all;
  for (Entry& entry : entries_) all.push_back(&entry);
  std::sort(all.begin(), all.end(),
            [](const Entry* a, const Entry* b) { return a->finalist != b->finalist ? a->finalist : faster(a, b); });
  std::vector<Ranked> ranking;
  ranking.reserve(all.size());
  for (const Entry* entry : all) {
    Summary seconds = entry->relative;
    seconds.median *= anchor_seconds_;
    seconds.p10 *= anchor_seconds_;
    seconds.p90 *= anchor_seconds_;
    ranking.push_back({entry->candidate, seconds, entry->finalist});
  }
  return ranking;
}

void Search::measure(const std::vector<Entry*>& field, int rounds) {
  Entry* const anchor = &entries_.front();
  std::vector<Entry*> together = field;
  if (std::find(field.begin(), field.end(), anchor) == field.end()) together.push_back(anchor);
  std::vector<std::size_t> which;
  which.reserve(together.size());
  for (const Entry* entry : together) which.push_back(entry->candidate);
  const std::vector<Timing> timings = time_(which, rounds);

  const auto at = static_cast<std::size_t>(std::find(together.begin(), together.end(), anchor) - together.begin());
  anchor_seconds_ = timings[at].median();
  for (std::size_t i = 0; i < together.size(); ++i) {
    const Timing& timing = timings[i];
    together[i]->relative = {.median = timing.median() / anchor_seconds_,
                             .p10 = timing.quantile(0.1) / anchor_seconds_,
                             .p90 = timing.quantile(0.9) / anchor_seconds_,
                             .rounds = rounds};
  }
}

std::size_t fastest(std::span<const Contender> contenders, const std::string& preferred) {
  double least = contenders[0].seconds;
  for (const Contender& contender : contenders) least = std::min(least, contender.seconds);
  std::size_t best = contenders.size();
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (contenders[i].seconds > least * (1 + tolerance)) continue;
    if (contenders[i].name == preferred) return i;
    if (best == contenders.size() || contenders[i].name < contenders[best].name) best = i;
  }
  return best;
}

}  // namespace jitsoftmax::tune
