// Promise: an exported cache is read back as it was written, equal contents are equal bytes, and anything
// else that a file may hold is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "cache/fields.hpp"
#include "cache/pack.hpp"
#include "cache_fixtures.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::Key;
using cache::Pack;
using cache::Rejection;

using Entries = std::map<Key, std::vector<char>>;

Entries entries(int count, std::size_t payload = 100) {
  Entries all;
  for (int cols = 1; cols <= count; ++cols) {
    const jit::Program program = sample_program(cols);
    const Key key = fixtures::key_of(program);
    all[key] = cache::serialize(key, program, sample_cubin(payload));
  }
  return all;
}

// Why it is refused; empty: it is not. The bytes are a copy of exactly their size.
std::string refusal(const std::vector<char>& bytes) {
  const auto exact = std::make_unique<char[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const auto read = cache::read_pack({exact.get(), bytes.size()});
  const auto* rejection = std::get_if<Rejection>(&read);
  return rejection == nullptr ? "" : rejection->reason;
}

// A file that says of itself what it likes, under a checksum that holds.
class Forgery {
 public:
  Forgery& begin(std::uint64_t entry_count, std::uint64_t record_count) {
    fields_.raw(std::string_view("jsmaxpak"));
    fields_.number(std::uint32_t{1});
    fields_.key(cache::digest_of(jit::templates()));
    fields_.number(entry_count);
    fields_.number(record_count);
    return *this;
  }
  Forgery& text(std::span<const char> bytes) {
    fields_.text(bytes);
    return *this;
  }
  Forgery& number(std::uint64_t value) {
    fields_.number(value);
    return *this;
  }
  [[nodiscard]] std::string refusal() {
    fields_.key(cache::digest_of(std::span<const char>(fields_.bytes())));
    return ::refusal(fields_.bytes());
  }

 private:
  cache::FieldWriter fields_;
};

}  // namespace

TEST_CASE("what is written is read back, in an order that follows from the content") {
  const Entries written = entries(5);
  const std::set<std::string> records{"{\"b\": 2}", "", "a"};
  const std::vector<char> bytes = cache::serialize_pack(written, records);
  CHECK(bytes == cache::serialize_pack(entries(5), {"a", "{\"b\": 2}", ""}));
  const auto read = cache::read_pack(bytes);
  REQUIRE(std::holds_alternative<Pack>(read));
  const Pack& pack = std::get<Pack>(read);
  REQUIRE(pack.entries.size() == 5);
  std::size_t at = 0;
  for (const auto& [key, entry] : written) {
    CHECK(std::vector<char>(pack.entries[at].begin(), pack.entries[at].end()) == entry);
    ++at;
  }
  REQUIRE(pack.records.size() == 3);
  CHECK(pack.records[0].empty());
  CHECK(std::string(pack.records[2].begin(), pack.records[2].end()) == "{\"b\": 2}");
  CHECK(refusal(cache::serialize_pack({}, {})).empty());
  CHECK(refusal(cache::serialize_pack({}, {"\xc3\xa4", "z"})).empty());  // by bytes, which have no sign
}

TEST_CASE("a file that is truncated or has one flipped bit anywhere is refused") {
  const std::vector<char> whole = cache::serialize_pack(entries(2, 8), {"a record"});
  REQUIRE(refusal(whole).empty());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}).empty());
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    CAPTURE(at);
    std::vector<char> flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    CHECK_FALSE(refusal(flipped).empty());
  }
  std::vector<char> longer = whole;
  longer.push_back('\0');
  CHECK(refusal(longer) == "has a wrong checksum");
}

TEST_CASE("lengths and counts that lie are refused under a checksum that holds") {
  const Entries two = entries(2, 8);
  const std::vector<char>& first = two.begin()->second;
  const std::vector<char>& second = std::next(two.begin())->second;
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  CHECK(Forgery().begin(2, 0).text(first).text(second).refusal().empty());
  CHECK(Forgery().begin(3, 0).text(first).text(second).refusal() == "has fewer entries than it says");
  CHECK(Forgery().begin(huge, 0).text(first).text(second).refusal() == "has fewer entries than it says");
  CHECK(Forgery().begin(1, huge).text(first).refusal() == "has fewer records than it says");
  CHECK(Forgery().begin(1, 0).text(first).text(second).refusal() == "has fields that do not fit its length");
  CHECK(Forgery().begin(1, 1).text(first).number(huge).refusal() == "has fewer records than it says");
  CHECK(Forgery().begin(1, 0).number(huge).refusal() == "has fewer entries than it says");
  CHECK(Forgery().begin(1, 0).number(first.size() + 1).refusal() == "has fewer entries than it says");
}

TEST_CASE("what is there twice, or out of order, is refused") {
  const Entries two = entries(2, 8);
  const std::vector<char>& first = two.begin()->second;
  const std::vector<char>& second = std::next(two.begin())->second;
  CHECK(Forgery().begin(2, 0).text(first).text(first).refusal() == "has entries twice or out of order");
  CHECK(Forgery().begin(2, 0).text(second).text(first).refusal() == "has entries twice or out of order");
  // One key, two contents.
  const jit::Program program = sample_program(1);
  jit::Cubin other = sample_cubin(8);
  other.compiler = "99.9";
  const Key key = fixtures::key_of(program);
  const std::vector<char> again = cache::serialize(key, program, other);
  CHECK(Forgery().begin(2, 0).text(two.at(key)).text(again).refusal() == "has entries twice or out of order");
  CHECK(Forgery().begin(0, 2).text(std::string("a")).text(std::string("a")).refusal() ==
        "has records twice or out of order");
  CHECK(Forgery().begin(0, 2).text(std::string("b")).text(std::string("a")).refusal() ==
        "has records twice or out of order");
}

TEST_CASE("an entry that no load would accept is refused, whatever its own checksum says") {
  const jit::Program program = sample_program();
  const auto with_entry = [](std::span<const char> entry) { return Forgery().begin(1, 0).text(entry).refusal(); };
  CHECK(with_entry(cache::serialize(fixtures::key_of(program), program, sample_cubin())).empty());
  CHECK(with_entry(std::string("../../../../../../etc/cron.d/entry")) ==
        "has an entry, number 1, that is no cache entry");
  CHECK(with_entry({}) == "has an entry, number 1, that is empty");
  CHECK(with_entry(cache::serialize({.high = 1, .low = 2}, program, sample_cubin()))
            .starts_with("has an entry, number 1, that is the entry of another key, "));
  jit::Cubin text = sample_cubin();
  text.payload[0] = '#';
  CHECK(with_entry(cache::serialize(fixtures::key_of(program), program, text)) ==
        "has an entry, number 1, that holds something that is no cubin");
}

TEST_CASE("another format and other kernels are told apart from damage") {
  cache::FieldWriter other;
  other.raw(std::string_view("jsmaxpak"));
  other.number(std::uint32_t{2});
  other.key(cache::digest_of(std::span<const char>(other.bytes())));
  const auto read = cache::read_pack(other.bytes());
  REQUIRE(std::holds_alternative<Rejection>(read));
  CHECK(std::get<Rejection>(read).other_version);
  CHECK(std::get<Rejection>(read).reason == "has format 2, not 1");

  cache::FieldWriter foreign;
  foreign.raw(std::string_view("jsmaxpak"));
  foreign.number(std::uint32_t{1});
  foreign.key({.high = 1, .low = 2});
  foreign.number(std::uint64_t{0});
  foreign.number(std::uint64_t{0});
  foreign.key(cache::digest_of(std::span<const char>(foreign.bytes())));
  CHECK(refusal(foreign.bytes()).starts_with("has the kernels of another version"));
  CHECK(refusal(cache::serialize(fixtures::key_of(sample_program()), sample_program(), sample_cubin())) ==
        "is no exported cache");
}

TEST_CASE("random bytes behind a checksum that holds are refused") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const Entries two = entries(2, 8);
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    std::vector<char> bytes = cache::serialize_pack(two, {"a record"});
    bytes.resize(bytes.size() - 16);
    for (unsigned i = 0; i < 1 + random() % 4; ++i)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    cache::FieldWriter fields;
    fields.key(cache::digest_of(std::span<const char>(bytes)));
    bytes.insert(bytes.end(), fields.bytes().begin(), fields.bytes().end());
    // Only a record's content is left for another reader to judge.
    const auto read = cache::read_pack(bytes);
    if (const auto* pack = std::get_if<Pack>(&read)) CHECK(pack->entries.size() == two.size());
  }
}
