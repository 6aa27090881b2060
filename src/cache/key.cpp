// Key: XXH128 over the fields of a program.
#include "cache/key.hpp"

#define XXH_INLINE_ALL  // everything static: no symbol of xxHash leaves this file
#include <xxhash.h>

#include <array>
#include <string_view>

#if XXH_VERSION_NUMBER < 800
#error "XXH128 is stable since xxHash 0.8.0: an older one would make other keys"
#endif

namespace jitsoftmax::cache {
namespace {

Key key_of_hash(XXH128_hash_t hash) { return {.high = hash.high64, .low = hash.low64}; }

// Each field is its length, 8 bytes little-endian, then its bytes; a list is its count, then its
// elements. So no two different sequences of fields feed the same bytes.
class Fields {
 public:
  Fields() { XXH3_128bits_reset(&state_); }

  void add(std::string_view field) {
    add_raw(field.size());
    XXH3_128bits_update(&state_, field.data(), field.size());
  }
  void add(std::uint64_t number) {
    add_raw(sizeof number);
    add_raw(number);
  }
  void add(std::span<const jit::TemplateFile> templates) {
    add(std::uint64_t{templates.size()});
    for (const jit::TemplateFile& file : templates) {
      add(file.name);
      add(file.text);
    }
  }
  [[nodiscard]] Key digest() const { return key_of_hash(XXH3_128bits_digest(&state_)); }

 private:
  void add_raw(std::uint64_t number) {
    std::array<unsigned char, 8> bytes{};
    for (unsigned char& byte : bytes) {
      byte = static_cast<unsigned char>(number & 0xff);
      number >>= 8;
    }
    XXH3_128bits_update(&state_, bytes.data(), bytes.size());
  }

  XXH3_state_t state_{};
};

std::uint64_t number(int value) { return static_cast<std::uint64_t>(std::int64_t{value}); }

}  // namespace

std::string Key::hex() const {
  std::string text;
  for (const std::uint64_t half : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(half >> shift) & 0xf];
  return text;
}

Key key_of(const jit::Program& program, std::span<const jit::TemplateFile> templates) {
  Fields fields;
  fields.add(std::uint64_t{schema});
  fields.add(templates);
  fields.add(program.text);
  fields.add(program.name);
  fields.add(std::uint64_t{program.options.size()});
  for (const std::string& option : program.options) fields.add(option);
  fields.add(number(program.arch.major));
  fields.add(number(program.arch.minor));
  fields.add(number(static_cast<unsigned char>(program.arch.suffix)));
  return fields.digest();
}

Key digest_of(std::span<const jit::TemplateFile> templates) {
  Fields fields;
  fields.add(templates);
  return fields.digest();
}

Key digest_of(std::span<const char> bytes) noexcept { return key_of_hash(XXH3_128bits(bytes.data(), bytes.size())); }

}  // namespace jitsoftmax::cache
