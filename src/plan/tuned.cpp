#include "plan/tuned.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "plan/candidates.hpp"

namespace jitsoftmax::plan {
namespace {

constexpr std::int64_t any_rows = std::numeric_limits<std::int64_t>::max();

// Fields of Config by their names in a spelling. One that is missing here makes its spellings unknown,
// since what was read has to be spelled the same again.
constexpr std::array<std::pair<std::string_view, int kernels::Config::*>, 8> numbers{{
    {"threads", &kernels::Config::threads},
    {"rows", &kernels::Config::rows},
    {"cluster", &kernels::Config::cluster},
    {"vector", &kernels::Config::vector},
    {"elements", &kernels::Config::elements},
    {"pieces", &kernels::Config::pieces},
    {"resident", &kernels::Config::resident},
    {"shared", &kernels::Config::shared},
}};
constexpr std::array<std::pair<std::string_view, bool kernels::Config::*>, 5> flags{{
    {"packed", &kernels::Config::packed},
    {"blocked", &kernels::Config::blocked},
    {"persistent", &kernels::Config::persistent},
    {"low_latency", &kernels::Config::low_latency},
    {"staggered", &kernels::Config::staggered},
}};

template <class Table>
auto find_named(const Table& table, std::string_view name) {
  return std::find_if(table.begin(), table.end(), [&](const auto& entry) { return entry.first == name; });
}

// ".threads=256"
bool read_field(std::string_view text, kernels::Config& config) {
  const std::size_t equals = text.find('=');
  if (text.empty() || text[0] != '.' || equals == std::string_view::npos) return false;
  const std::string_view name = text.substr(1, equals - 1);
  const std::string_view value = text.substr(equals + 1);
  if (const auto flag = find_named(flags, name); flag != flags.end()) {
    config.*flag->second = value == "true";
    return true;
  }
  const auto number = find_named(numbers, name);
  if (number == numbers.end()) return false;
  return std::from_chars(value.data(), value.data() + value.size(), config.*number->second).ec == std::errc{};
}

}  // namespace

std::string_view name_of(RowsBucket bucket) noexcept { return bucket == RowsBucket::few ? "few" : "many"; }

Specialization unaligned(const Specialization& member) noexcept {
  Specialization result = member;
  result.config.aligned = false;
  result.config.peeled = false;
  result.least_rows = 0;
  result.most_rows = any_rows;
  return result;
}

Specialization chosen_for(const Bundle& built_in, std::int64_t rows) noexcept {
  const auto serves = [&](const Specialization& s) { return s.least_rows <= rows && s.most_rows >= rows; };
  const auto found = std::find_if(built_in.begin(), built_in.end(), serves);
  return unaligned(found == built_in.end() ? built_in.back() : *found);
}

std::optional<Specialization> specialization_named(const Problem& problem, std::string_view spelling) {
  const std::size_t open = spelling.find("<Config{");
  const std::size_t close = spelling.find('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const std::optional<Family> family = family_named(spelling.substr(0, open));
  if (!family) return std::nullopt;

  kernels::Config config;
  constexpr std::size_t head = std::string_view("<Config{").size();
  std::string_view fields = spelling.substr(open + head, close - open - head);
  while (!fields.empty()) {
    const std::size_t comma = std::min(fields.find(','), fields.size());
    if (!read_field(fields.substr(0, comma), config)) return std::nullopt;
    fields.remove_prefix(std::min(comma + 1, fields.size()));
  }
  // Numbers that no legal kernel has must not overflow where its shared memory is planned.
  constexpr int beyond_any_use = 4096;
  for (const auto& [name, field] : numbers) {
    if (field != &kernels::Config::shared && (config.*field < 0 || config.*field > beyond_any_use)) return std::nullopt;
  }
  if (config.vector < 1) return std::nullopt;
  // The layout is no part of the spelling, but decides the family.
  if (is_strided(*family) != (problem.layout == Layout::strided)) return std::nullopt;
  Specialization result = specialization(problem, *family, config);
  if (spelling.find(",Runtime,") != std::string_view::npos) result.cols = 0;
  if (!illegal(result).empty() || name_expression(result) != spelling) return std::nullopt;
  return result;
}

Bundle with_picks(const Bundle& built_in, const Tuned& tuned) {
  // A pick that confirms the built-in choice changes nothing.
  const auto differs = [&](const std::optional<Specialization>& pick, std::int64_t rows) {
    return pick && name_expression(*pick) != name_expression(chosen_for(built_in, rows));
  };
  const bool few = differs(tuned.few, fewest_rows(RowsBucket::few));
  const bool many = differs(tuned.many, tuned.many_rows);
  if (!few && !many) return built_in;
  Bundle bundle;
  std::int64_t served = 0;  // rows up to which a launch finds a member already, however it is aligned
  const auto add = [&](const Bundle& members, std::int64_t most_rows, bool picked) {
    for (Specialization member : members) {
      member.most_rows = std::min(member.most_rows, most_rows);
      if (member.most_rows <= served || member.least_rows > member.most_rows) continue;
      if (picked) member.origin = Origin::record;
      if (!member.config.aligned || member.config.vector == 1) served = member.most_rows;
      bundle.push_back(member);
    }
  };
  add(few ? bundle_of(*tuned.few, false) : built_in, most_few_rows, few);
  if (many) {
    Bundle for_more = built_in;
    std::erase_if(for_more, [&](const Specialization& member) { return member.least_rows <= tuned.many_rows; });
    add(for_more, any_rows, false);
  }
  add(many ? bundle_of(*tuned.many, false) : built_in, any_rows, many);
  return bundle;
}

}  // namespace jitsoftmax::plan
