#include "cache/pack.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "cache/fields.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::cache {
namespace {

constexpr std::string_view magic = "jsmaxpak";
constexpr std::uint32_t format = 1;
constexpr std::size_t checksum_bytes = 16;

// Text is ordered by bytes, where char may have a sign.
std::string_view as_text(std::span<const char> bytes) noexcept { return {bytes.data(), bytes.size()}; }

// Accepted by a load, which knows its program, and so its key; that key is returned.
std::variant<Key, Rejection> key_of_entry(std::span<const char> bytes) {
  if (bytes.size() > std::size_t{max_entry_bytes}) return Rejection{"is larger than an entry can be"};
  auto inspected = inspect(bytes);
  if (auto* rejection = std::get_if<Rejection>(&inspected)) return std::move(*rejection);
  const jit::Program& program = std::get<Description>(inspected).program;
  const Key key = key_of(program, jit::templates());
  auto parsed = parse(bytes, key, program);
  if (auto* rejection = std::get_if<Rejection>(&parsed)) return std::move(*rejection);
  return key;
}

std::optional<Rejection> read_entries(FieldReader& in, std::uint64_t count, Pack& pack) {
  std::optional<Key> last;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto entry = in.field();
    if (in.failed()) return Rejection{"has fewer entries than it says"};
    auto read = key_of_entry(entry);
    if (auto* rejection = std::get_if<Rejection>(&read))
      return Rejection{"has an entry, number " + std::to_string(i + 1) + ", that " + rejection->reason,
                       rejection->other_version};
    const Key key = std::get<Key>(read);
    if (last && *last >= key) return Rejection{"has entries twice or out of order"};
    last = key;
    pack.entries.push_back(entry);
  }
  return std::nullopt;
}

std::optional<Rejection> read_records(FieldReader& in, std::uint64_t count, Pack& pack) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto record = in.field();
    if (in.failed()) return Rejection{"has fewer records than it says"};
    if (!pack.records.empty() && as_text(pack.records.back()) >= as_text(record))
      return Rejection{"has records twice or out of order"};
    pack.records.push_back(record);
  }
  return std::nullopt;
}

}  // namespace

std::vector<char> serialize_pack(const std::map<Key, std::vector<char>>& entries,
                                 const std::set<std::string>& records) {
  FieldWriter out;
  std::size_t bytes = magic.size() + sizeof format + 2 * checksum_bytes + 2 * sizeof(std::uint64_t);
  for (const auto& [key, entry] : entries) bytes += sizeof(std::uint64_t) + entry.size();
  for (const std::string& record : records) bytes += sizeof(std::uint64_t) + record.size();
  out.bytes().reserve(bytes);
  out.raw(magic);
  out.number(format);
  out.key(digest_of(jit::templates()));
  out.number(std::uint64_t{entries.size()});
  out.number(std::uint64_t{records.size()});
  for (const auto& [key, entry] : entries) out.text(entry);
  for (const std::string& record : records) out.text(record);
  out.key(digest_of(std::span<const char>(out.bytes())));
  return std::move(out.bytes());
}

std::variant<Pack, Rejection> read_pack(std::span<const char> bytes) {
  if (bytes.empty()) return Rejection{"is empty"};
  FieldReader in(bytes.first(bytes.size() - std::min(bytes.size(), checksum_bytes)));
  const auto start = in.raw(magic.size());
  const auto version = in.number<std::uint32_t>();
  if (in.failed()) return Rejection{"is truncated"};
  if (!std::ranges::equal(start, magic)) return Rejection{"is no exported cache"};
  FieldReader checksum(bytes.last(checksum_bytes));
  if (checksum.key() != digest_of(bytes.first(bytes.size() - checksum_bytes))) return Rejection{"has a wrong checksum"};
  if (version != format)
    return Rejection{"has format " + std::to_string(version) + ", not " + std::to_string(format), true};
  if (in.key() != digest_of(jit::templates()))
    return Rejection{"has the kernels of another version of this library, which this one would never load", true};

  // What follows cannot fail for a file that this library wrote; but a checksum proves no author.
  const auto entries = in.number<std::uint64_t>();
  const auto records = in.number<std::uint64_t>();
  Pack pack;
  if (auto rejection = read_entries(in, entries, pack)) return *std::move(rejection);
  if (auto rejection = read_records(in, records, pack)) return *std::move(rejection);
  if (!in.at_end()) return Rejection{"has fields that do not fit its length"};
  return pack;
}

}  // namespace jitsoftmax::cache
