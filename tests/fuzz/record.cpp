// Promise of tune/record_text.hpp: no text makes the reader throw, and a record that it accepts is written
// and read again as the same record.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cache/key.hpp"
#include "fuzz/fuzz_target.hpp"
#include "tune/record_text.hpp"

namespace {

using namespace jitsoftmax;  // NOLINT(google-build-using-namespace)
using Json = nlohmann::ordered_json;

const std::string templates(32, 'a');

tune::RecordKey sample_key() {
  Problem problem;
  problem.cols = 4096;
  return {.problem = problem, .device = "NVIDIA H200", .driver_major = 13};
}

void check(std::span<const char> text) {
  const auto origin = tune::origin_of(text, templates);
  const auto keyed = tune::parse_keyed(text, templates);
  if (const auto* any = std::get_if<tune::KeyedRecord>(&keyed)) {
    const std::string written = tune::to_text(any->key, templates, any->record);
    fuzz::require(
        std::holds_alternative<tune::Record>(tune::parse(std::span<const char>(written), any->key, templates)),
        "a record is found by the key that it was read with");
  }
  const auto parsed = tune::parse(text, sample_key(), templates);
  if (const auto* refused = std::get_if<tune::NoRecord>(&parsed)) {
    fuzz::require(!refused->reason.empty(), "a refusal has a reason");
    return;
  }
  fuzz::require(std::holds_alternative<tune::RecordOrigin>(origin), "who reads a record can also tell its origin");
  const auto& record = std::get<tune::Record>(parsed);
  const std::string written = tune::to_text(sample_key(), templates, record);
  const auto again = tune::parse(std::span<const char>(written), sample_key(), templates);
  fuzz::require(std::holds_alternative<tune::Record>(again), "what is written is accepted");
  fuzz::require(tune::to_text(sample_key(), templates, std::get<tune::Record>(again)) == written,
                "a record is read as it was written");
}

// The text with the format, schema, templates and checksum of a record, and with the key that is asked for
// or its own; nothing if it is no object.
std::optional<std::string> sealed(std::span<const char> text, bool own_key) {
  if (std::ranges::count(text, '[') + std::ranges::count(text, '{') > 1000) return std::nullopt;  // dump() recurses
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const Json sample = Json::parse(tune::to_text(sample_key(), templates, {.rows = 1}));
  json.erase("checksum");
  for (const auto& [name, value] : sample.items()) {
    if ((own_key && name == "key") || name == "rows" || name == "effort" || name == "specializations") continue;
    json[name] = value;
  }
  json.erase("checksum");
  try {
    json["checksum"] = cache::digest_of(std::span<const char>(json.dump())).hex();
    return json.dump();
  } catch (const Json::exception&) {  // text that is no UTF-8
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const char> text(reinterpret_cast<const char*>(data), size);
  check(text);
  for (const bool own_key : {false, true})
    if (const auto whole = sealed(text, own_key)) check(std::span<const char>(*whole));
  return 0;
}
