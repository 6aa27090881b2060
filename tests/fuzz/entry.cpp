// Promise of cache/entry.hpp: no content makes the reader throw or read past its bytes, and what it
// accepts is what would be written for what it read.
#include "cache/entry.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "cache_sealed.hpp"
#include "fuzz/fuzz_target.hpp"
#include "jit/source.hpp"

namespace {

using namespace jitsoftmax;  // NOLINT(google-build-using-namespace)

void check(std::span<const char> bytes) {
  const auto inspected = cache::inspect(bytes);
  if (const auto* rejection = std::get_if<cache::Rejection>(&inspected)) {
    fuzz::require(!rejection->reason.empty(), "a rejection has a reason");
    return;
  }
  const auto& entry = std::get<cache::Description>(inspected);
  fuzz::require(cache::begins_as_entry(bytes), "what is accepted begins as an entry");
  const bool own = entry.templates == cache::digest_of(jit::templates());
  const auto parsed = cache::parse(bytes, entry.key, entry.program);
  fuzz::require(std::holds_alternative<jit::Cubin>(parsed) == own, "only what this library's templates made is used");
  if (own) {
    const std::vector<char> again = cache::serialize(entry.key, entry.program, entry.cubin);
    fuzz::require(std::ranges::equal(again, bytes), "an entry has one spelling");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const char> bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // Chance does not find a checksum, so the rest is also read behind one that holds.
  if (const auto sealed = testing::sealed_entry(bytes)) check(*sealed);
  return 0;
}
