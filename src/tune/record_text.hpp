// The text of a record's file, as JSON. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>

#include "tune/record.hpp"

namespace jitsoftmax::tune {

// Raised whenever the meaning of a record changes.
inline constexpr int record_schema = 1;

// Nothing larger is read: some 250 bytes a specialization, and under 200 of them.
inline constexpr std::size_t max_record_bytes = std::size_t{4} << 20;

// `templates`: the digest of the kernels that were timed. Other kernels have other times.
[[nodiscard]] std::string to_text(const RecordKey& key, const std::string& templates, const Record& record);

// Why a text is not the record that was asked for.
struct NoRecord {
  enum class Kind { damaged, stale, foreign } kind;
  std::string reason;  // a clause whose subject is the file
};

// Never throws for any text, but std::bad_alloc. What it accepts has a checksum that holds.
[[nodiscard]] std::variant<Record, NoRecord> parse(std::span<const char> text, const RecordKey& key,
                                                   const std::string& templates);

// A record that was read without knowing its key.
struct KeyedRecord {
  RecordKey key;
  Record record;
};

// As parse(), for any key that makes sense.
[[nodiscard]] std::variant<KeyedRecord, NoRecord> parse_keyed(std::span<const char> text, const std::string& templates);

// What a record says of itself.
struct RecordOrigin {
  std::string device;
  int driver_major = 0;
};

// As parse_keyed(), but the problem and the times in it are not looked at.
[[nodiscard]] std::variant<RecordOrigin, NoRecord> origin_of(std::span<const char> text, const std::string& templates);

}  // namespace jitsoftmax::tune
