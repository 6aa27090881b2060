#include "tune/record_text.hpp"

// A namespace of our own, so that no weak symbol in the archive is taken for one of the program that links
// it, which may be of the same version of nlohmann_json and configured otherwise.
#define NLOHMANN_JSON_NAMESPACE nlohmann::of_jitsoftmax
#define NLOHMANN_JSON_NAMESPACE_BEGIN \
  namespace nlohmann {                \
  inline namespace of_jitsoftmax {
#define NLOHMANN_JSON_NAMESPACE_END \
  }                                 \
  }

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cache/key.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax::tune {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view format = "jitsoftmax tuning record";

// Over the content and not the text, so that white space is nobody's damage.
std::string checksum_of(const Json& content) { return cache::digest_of(std::span<const char>(content.dump())).hex(); }

Json json_of(const RecordKey& key) {
  return {{"cols", key.problem.cols},
          {"in", plan::name_of(key.problem.in)},
          {"out", plan::name_of(key.problem.out)},
          {"op", plan::name_of(key.problem.op)},
          {"layout", key.problem.layout == Layout::strided ? "strided" : "contiguous"},
          {"rows_bucket", plan::name_of(key.bucket)},
          {"device", key.device},
          {"driver_major", key.driver_major}};
}

Json json_of(const RecordEntry& entry) {
  Json json{{"specialization", entry.specialization}};
  if (!entry.rejected.empty()) {
    json["rejected"] = entry.rejected;
    return json;
  }
  json["median_seconds"] = entry.seconds.median;
  json["p10_seconds"] = entry.seconds.p10;
  json["p90_seconds"] = entry.seconds.p90;
  json["rounds"] = entry.seconds.rounds;
  json["finalist"] = entry.finalist;
  return json;
}

// Both throw for any other number: of one that is too large the conversion would be undefined.
std::int64_t integer(const Json& json) { return json.get_ref<const Json::number_integer_t&>(); }
int small_integer(const Json& json) {
  using Limits = std::numeric_limits<int>;
  return static_cast<int>(std::clamp<std::int64_t>(integer(json), Limits::min(), Limits::max()));
}

RecordEntry entry_of(const Json& json) {
  RecordEntry entry;
  entry.specialization = json.at("specialization").get<std::string>();
  if (json.contains("rejected")) {
    entry.rejected = json.at("rejected").get<std::string>();
    return entry;
  }
  entry.seconds.median = json.at("median_seconds").get<double>();
  entry.seconds.p10 = json.at("p10_seconds").get<double>();
  entry.seconds.p90 = json.at("p90_seconds").get<double>();
  entry.seconds.rounds = small_integer(json.at("rounds"));
  entry.finalist = json.at("finalist").get<bool>();
  return entry;
}

// Nothing for a key that no record of this library has.
std::optional<RecordKey> key_of(const Json& json) {
  RecordKey key;
  key.problem.cols = integer(json.at("cols"));
  const auto in = plan::dtype_named(json.at("in").get<std::string>());
  const auto out = plan::dtype_named(json.at("out").get<std::string>());
  if (!in || !out || key.problem.cols < 1) return std::nullopt;
  key.problem.in = *in;
  key.problem.out = *out;
  key.problem.op = json.at("op") == plan::name_of(Op::log_softmax) ? Op::log_softmax : Op::softmax;
  key.problem.layout = json.at("layout") == "strided" ? Layout::strided : Layout::contiguous;
  key.bucket =
      json.at("rows_bucket") == plan::name_of(plan::RowsBucket::few) ? plan::RowsBucket::few : plan::RowsBucket::many;
  key.device = json.at("device").get<std::string>();
  key.driver_major = small_integer(json.at("driver_major"));
  // Spelled as this library spells it: nothing above was guessed.
  if (json != json_of(key)) return std::nullopt;
  return key;
}

Record record_of(const Json& json) {
  Record record;
  record.rows = integer(json.at("rows"));
  record.effort = json.at("effort").get<std::string>() == "full" ? TuneEffort::full : TuneEffort::quick;
  for (const Json& entry : json.at("specializations")) record.entries.push_back(entry_of(entry));
  return record;
}

bool is_sound(const Record& record) {
  if (record.rows < 1) return false;
  std::set<std::string_view> names;
  for (const RecordEntry& entry : record.entries) {
    const bool timed = std::isfinite(entry.seconds.median) && entry.seconds.median > 0;
    if (!names.insert(entry.specialization).second || (entry.rejected.empty() && !timed)) return false;
  }
  return true;
}

// Nested deeper or with more names than any record, a text would take a stack or an hour to look through.
constexpr int max_depth = 8;
constexpr int max_names = 8192;

// What is wrong with a text whatever its key is, or nothing; `json` is then its content.
std::optional<NoRecord> read(std::span<const char> text, Json& json) {
  using enum NoRecord::Kind;
  if (text.size() > max_record_bytes) return NoRecord{damaged, "is larger than a record can be"};
  int names = 0;
  bool excessive = false;
  json = Json::parse(text.begin(), text.end(), [&](int depth, Json::parse_event_t event, const Json&) {
    if (event == Json::parse_event_t::key) ++names;
    excessive = excessive || depth > max_depth || names > max_names;
    return !excessive;
  });
  if (excessive) return NoRecord{damaged, "is no tuning record"};
  if (json.at("format").get<std::string>() != format) return NoRecord{damaged, "is no tuning record"};
  if (integer(json.at("schema")) != record_schema) return NoRecord{stale, "was made by another version of the library"};
  const std::string checksum = json.at("checksum").get<std::string>();
  json.erase("checksum");
  if (checksum_of(json) != checksum) return NoRecord{damaged, "is damaged: its checksum differs"};
  return std::nullopt;
}

bool is_stale(const Json& json, const std::string& templates) {
  return json.at("templates").get<std::string>() != templates;
}

NoRecord made_with_other_kernels() {
  return {NoRecord::Kind::stale, "was made with other kernels than this library has"};
}

NoRecord contradicting() { return {NoRecord::Kind::damaged, "is damaged: it contradicts itself"}; }

NoRecord unreadable() { return {NoRecord::Kind::damaged, "is damaged: it cannot be read as a tuning record"}; }

}  // namespace

std::string to_text(const RecordKey& key, const std::string& templates, const Record& record) {
  Json json{{"format", format},
            {"schema", record_schema},
            {"templates", templates},
            {"key", json_of(key)},
            {"rows", record.rows},
            {"effort", record.effort == TuneEffort::full ? "full" : "quick"},
            {"specializations", Json::array()}};
  for (const RecordEntry& entry : record.entries) json["specializations"].push_back(json_of(entry));
  json["checksum"] = checksum_of(json);
  return json.dump(1) + "\n";
}

std::variant<Record, NoRecord> parse(std::span<const char> text, const RecordKey& key, const std::string& templates) {
  using enum NoRecord::Kind;
  try {
    Json json;
    if (auto refused = read(text, json)) return *std::move(refused);
    if (json.at("key") != json_of(key)) return NoRecord{foreign, "is of another problem, device or driver"};
    if (is_stale(json, templates)) return made_with_other_kernels();

    Record record = record_of(json);
    if (!is_sound(record)) return contradicting();
    return record;
  } catch (const Json::exception&) {
    return unreadable();
  }
}

std::variant<KeyedRecord, NoRecord> parse_keyed(std::span<const char> text, const std::string& templates) {
  try {
    Json json;
    if (auto refused = read(text, json)) return *std::move(refused);
    if (is_stale(json, templates)) return made_with_other_kernels();
    std::optional<RecordKey> key = key_of(json.at("key"));
    if (!key) return contradicting();
    KeyedRecord result{.key = *std::move(key), .record = record_of(json)};
    if (!is_sound(result.record)) return contradicting();
    return result;
  } catch (const Json::exception&) {
    return unreadable();
  }
}

std::variant<RecordOrigin, NoRecord> origin_of(std::span<const char> text, const std::string& templates) {
  try {
    Json json;
    if (auto refused = read(text, json)) return *std::move(refused);
    if (is_stale(json, templates)) return made_with_other_kernels();
    const Json& key = json.at("key");
    return RecordOrigin{key.at("device").get<std::string>(), small_integer(key.at("driver_major"))};
  } catch (const Json::exception&) {
    return unreadable();
  }
}

}  // namespace jitsoftmax::tune
