// A cache entry comes back as it was written, and every other sequence of bytes is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "cache/entry.hpp"
#include "cache_fixtures.hpp"
#include "cache_sealed.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::Description;
using cache::inspect;
using cache::Key;
using cache::parse;
using cache::Rejection;
using cache::serialize;
using jitsoftmax::testing::resealed;
using jitsoftmax::testing::store_number;

const jit::Program program = sample_program();
const Key key = fixtures::key_of(program);

// Parses a copy of exactly this size, so that a sanitizer sees any access outside.
std::string reason(const std::vector<char>& bytes, const jit::Program& asked = program, const Key& asked_key = key) {
  const auto exact = std::make_unique<char[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const auto parsed = parse({exact.get(), bytes.size()}, asked_key, asked);
  const auto* rejection = std::get_if<Rejection>(&parsed);
  if (rejection == nullptr) return {};
  CHECK_FALSE(rejection->reason.empty());
  return rejection->reason;
}

}  // namespace

TEST_CASE("an entry comes back whole") {
  jit::Cubin cubin = sample_cubin();
  const auto bytes = serialize(key, program, cubin);
  const auto parsed = parse(bytes, key, program);
  REQUIRE(std::holds_alternative<jit::Cubin>(parsed));
  CHECK(same(std::get<jit::Cubin>(parsed), cubin));

  const auto inspected = inspect(bytes);
  REQUIRE(std::holds_alternative<Description>(inspected));
  const auto& description = std::get<Description>(inspected);
  CHECK(description.key == key);
  CHECK(description.templates == cache::digest_of(jit::templates()));
  CHECK(description.program.arch == program.arch);
  CHECK(description.program.text == program.text);
  CHECK(description.program.name == program.name);
  CHECK(description.program.options == program.options);
  CHECK(same(description.cubin, cubin));
  CHECK(fixtures::key_of(description.program) == description.key);
}

TEST_CASE("the format is what it was when entries were first shipped") {
  // Offsets as entry.hpp has them; a change needs a new schema.
  const auto bytes = serialize(key, program, sample_cubin());
  CHECK(std::string(bytes.data(), 8) == "jsmaxjit");
  CHECK(std::string(bytes.data() + 8, 4) == std::string("\1\0\0\0", 4));
  std::vector<char> low(8);
  store_number(low, 0, key.low, 8);
  CHECK(std::equal(low.begin(), low.end(), bytes.begin() + 20));
  CHECK(std::string(bytes.data() + 44, 9) == std::string("\x9\0\0\0\0\0\0\0a", 9));
  std::size_t size = 8 + 4 + 16 + 16 + 9 + 8 + program.text.size() + 8 + program.name.size() + 8;
  for (const auto& option : program.options) size += 8 + option.size();
  CHECK(bytes.size() == size + 1 + 8 + 4 + 8 + sample_cubin().kernel.size() + 16 + 8 + 200 + 16);
}

TEST_CASE("an entry cut off at any byte is refused") {
  const auto bytes = serialize(key, program, sample_cubin());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(reason({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}) != "");
  }
}

TEST_CASE("an entry cut off anywhere under a right checksum is refused") {
  const auto bytes = serialize(key, program, sample_cubin());
  for (std::size_t size = 16; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(reason(resealed({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)})) != "");
  }
}

TEST_CASE("one flipped bit anywhere is refused") {
  auto bytes = serialize(key, program, sample_cubin());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      CAPTURE(at);
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << bit));
      CHECK(reason(bytes) != "");
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << bit));
    }
  }
  CHECK(reason(bytes) == "");
}

TEST_CASE("trailing bytes are refused, with and without a right checksum") {
  auto bytes = serialize(key, program, sample_cubin());
  bytes.push_back('\0');
  CHECK(reason(bytes) != "");
  CHECK(reason(resealed(bytes)).find("length") != std::string::npos);
}

TEST_CASE("lengths that lie are refused") {
  const auto bytes = serialize(key, program, sample_cubin());
  constexpr std::size_t first_length = 8 + 4 + 16 + 16 + 9;
  constexpr std::uint64_t most = ~std::uint64_t{0};
  constexpr std::uint64_t lies[] = {0, 1, 0x7fffffff, 0xffffffff, 0x100000000, most / 2, most, most - 7, most - 15};
  for (std::size_t at = first_length; at + 8 + 16 <= bytes.size(); ++at) {
    for (const std::uint64_t lie : lies) {
      auto lying = bytes;
      store_number(lying, at, lie, 8);
      if (lying == bytes) continue;
      CAPTURE(at);
      CAPTURE(lie);
      // Over the resource facts and the payload a number is as good as another.
      (void)reason(resealed(lying));
    }
  }
  for (const std::uint64_t lie : lies) {
    auto lying = bytes;
    store_number(lying, first_length, lie, 8);
    CHECK(reason(resealed(lying)) != "");
  }
}

TEST_CASE("random bytes are refused") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<char> bytes(random() % 400);
    for (char& byte : bytes) byte = static_cast<char>(random() & 0xff);
    CHECK(reason(bytes) != "");
    // With the start and the checksum of an entry, so that the fields are read.
    if (bytes.size() < 28) continue;
    std::memcpy(bytes.data(), "jsmaxjit\1\0\0\0", 12);
    CHECK(reason(resealed(bytes)) != "");
  }
}

TEST_CASE("an entry of another program is refused, and says why") {
  const auto bytes = serialize(key, program, sample_cubin());
  CHECK(reason(bytes, program, {.high = key.high, .low = key.low + 1}).find("another key") != std::string::npos);
  const auto with = [&](auto change) {
    jit::Program other = program;
    change(other);
    return reason(bytes, other);  // under the same key
  };
  CHECK(with([](jit::Program& p) { p.arch.suffix = 0; }).find("architecture") != std::string::npos);
  CHECK(with([](jit::Program& p) { p.name += ' '; }).find("kernel") != std::string::npos);
  CHECK(with([](jit::Program& p) { p.text += ' '; }).find("program") != std::string::npos);
  CHECK(with([](jit::Program& p) { p.options.pop_back(); }).find("options") != std::string::npos);

  auto other_templates = bytes;
  other_templates[8 + 4 + 16] ^= 1;
  CHECK(reason(resealed(other_templates)).find("templates") != std::string::npos);
  CHECK(std::holds_alternative<Description>(inspect(resealed(other_templates))));
  auto other_schema = bytes;
  other_schema[8] = 2;
  CHECK(reason(resealed(other_schema)) == "has schema 2, not 1");
  auto other_magic = bytes;
  other_magic[0] = 'J';
  CHECK(reason(resealed(other_magic)) == "is no cache entry");
}

TEST_CASE("a payload that no driver could load is refused") {
  const auto with = [&](auto change) {
    jit::Cubin cubin = sample_cubin();
    change(cubin);
    return reason(serialize(key, program, cubin));
  };
  const auto ptx = [&](const std::string& text) {
    return with([&](jit::Cubin& c) {
      c.kind = jit::PayloadKind::ptx;
      c.payload.assign(text.begin(), text.end());
    });
  };
  CHECK(with([](jit::Cubin&) {}) == "");
  CHECK(with([](jit::Cubin& c) { c.payload.clear(); }) == "holds no code");
  CHECK(with([](jit::Cubin& c) { c.payload.resize(4); }) != "");
  CHECK(with([](jit::Cubin& c) { c.payload[0] = 0x7e; }) != "");
  CHECK(with([](jit::Cubin& c) { c.kernel.clear(); }) == "names no kernel");
  CHECK(with([](jit::Cubin& c) { c.kind = jit::PayloadKind{3}; }) != "");
  CHECK(with([](jit::Cubin& c) { c.kind = jit::PayloadKind{0}; }) != "");
  CHECK(ptx(".version 8.0\n\t.target sm_90\r\n") == "");
  CHECK(ptx(std::string(".version 8.0\n\0", 14)) == "");
  CHECK(ptx("") != "");
  CHECK(ptx(std::string(1, '\0')) != "");
  CHECK(ptx(std::string(".ver\0sion", 9)) != "");
  CHECK(ptx("\x7f\x45\x4c\x46") != "");
}
