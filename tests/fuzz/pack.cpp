// Promise of cache/pack.hpp: no content makes the reader throw or read past its bytes, and equal contents are
// equal bytes.
#include "cache/pack.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "cache_sealed.hpp"
#include "fuzz/fuzz_target.hpp"

namespace {

using namespace jitsoftmax;  // NOLINT(google-build-using-namespace)

void check(std::span<const char> bytes) {
  const auto read = cache::read_pack(bytes);
  if (const auto* rejection = std::get_if<cache::Rejection>(&read)) {
    fuzz::require(!rejection->reason.empty(), "a rejection has a reason");
    return;
  }
  const auto& pack = std::get<cache::Pack>(read);
  std::map<cache::Key, std::vector<char>> entries;
  for (const std::span<const char> entry : pack.entries) {
    const auto inspected = cache::inspect(entry);
    fuzz::require(std::holds_alternative<cache::Description>(inspected), "an entry of a pack is an entry");
    entries.emplace(std::get<cache::Description>(inspected).key, std::vector<char>(entry.begin(), entry.end()));
  }
  std::set<std::string> records;
  for (const std::span<const char> record : pack.records) records.emplace(record.begin(), record.end());
  fuzz::require(std::ranges::equal(cache::serialize_pack(entries, records), bytes), "a pack has one spelling");
}

// A pack whose entries and records are the pieces between "---": the first byte of a piece says which. An
// entry gets what chance does not find: the checksum, and the key of its program.
std::vector<char> composed(std::span<const char> bytes) {
  std::map<cache::Key, std::vector<char>> entries;
  std::set<std::string> records;
  std::string_view rest(bytes.data(), bytes.size());
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, rest.find("---"));
    rest.remove_prefix(std::min(rest.size(), piece.size() + 3));
    if (piece.empty() || piece.front() != 'e') {
      records.emplace(piece);
      continue;
    }
    auto entry = testing::sealed_entry(std::span<const char>(piece.substr(1)));
    if (!entry) continue;
    const auto inspected = cache::inspect(*entry);
    if (const auto* description = std::get_if<cache::Description>(&inspected)) {
      const cache::Key key = cache::key_of(description->program, jit::templates());
      testing::store_number(*entry, 12, key.high);
      testing::store_number(*entry, 20, key.low);
      entries[key] = testing::resealed(*std::move(entry));
    }
  }
  return cache::serialize_pack(entries, records);
}

// The bytes under the magic, format, templates and checksum of a pack.
std::vector<char> sealed(std::span<const char> bytes) {
  std::vector<char> pack = cache::serialize_pack({}, {});
  constexpr std::size_t start = 8 + 4 + 16;
  pack.resize(start);
  pack.insert(pack.end(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(start, bytes.size())), bytes.end());
  pack.resize(std::max(pack.size(), start + 16));
  return testing::resealed(std::move(pack));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const char> bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  check(sealed(bytes));
  const std::vector<char> pack = composed(bytes);
  fuzz::require(std::holds_alternative<cache::Pack>(cache::read_pack(pack)), "what is written is accepted");
  check(pack);
  return 0;
}
