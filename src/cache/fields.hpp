// Fields: how the cache's binary files are written and read. Numbers are little-endian; a text is its
// length (8 bytes), then its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/key.hpp"

namespace jitsoftmax::cache {

class FieldWriter {
 public:
  template <class Number>
  void number(Number value) {
    for (std::size_t byte = 0; byte < sizeof value; ++byte)
      bytes_.push_back(static_cast<char>((std::uint64_t{value} >> (8 * byte)) & 0xff));
  }
  void raw(std::span<const char> field) { bytes_.insert(bytes_.end(), field.begin(), field.end()); }
  void text(std::span<const char> field) {
    number(std::uint64_t{field.size()});
    raw(field);
  }
  void key(const Key& value) {
    number(value.high);
    number(value.low);
  }
  [[nodiscard]] std::vector<char>& bytes() noexcept { return bytes_; }

 private:
  std::vector<char> bytes_;
};

// After the first field that does not fit, all fields are empty and failed() is true.
class FieldReader {
 public:
  explicit FieldReader(std::span<const char> bytes) noexcept : rest_(bytes) {}

  std::span<const char> raw(std::uint64_t size) noexcept {
    if (size > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const auto field = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(field.size());
    return field;
  }
  template <class Number>
  Number number() noexcept {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const char byte : raw(sizeof(Number))) {
      value |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
      shift += 8;
    }
    return static_cast<Number>(value);
  }
  std::span<const char> field() noexcept { return raw(number<std::uint64_t>()); }
  std::string text() {
    const auto bytes = field();
    return {bytes.begin(), bytes.end()};
  }
  Key key() noexcept {
    const auto high = number<std::uint64_t>();
    return {.high = high, .low = number<std::uint64_t>()};
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool at_end() const noexcept { return !failed_ && rest_.empty(); }

 private:
  std::span<const char> rest_;
  bool failed_ = false;
};

}  // namespace jitsoftmax::cache
