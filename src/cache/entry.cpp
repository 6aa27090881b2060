// Entry: bytes of a cache file from and to a compiled program.
#include "cache/entry.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "cache/fields.hpp"

namespace jitsoftmax::cache {
namespace {

constexpr std::string_view magic = "jsmaxjit";
static_assert(magic.size() == entry_magic_bytes);
constexpr std::size_t checksum_bytes = 16;
// Far more than any program has; a bound, since an option costs more memory than file.
constexpr std::uint64_t max_options = 4096;

bool is_cubin(std::span<const char> payload) noexcept {
  constexpr std::string_view elf = "\x7f\x45\x4c\x46";  // 0x7f 'E' 'L' 'F'
  return payload.size() > elf.size() && std::ranges::equal(payload.first(elf.size()), elf);
}

// NVRTC counts the terminating 0 as part of PTX; it may be there or not.
bool is_ptx(std::span<const char> payload) noexcept {
  if (!payload.empty() && payload.back() == '\0') payload = payload.first(payload.size() - 1);
  return !payload.empty() && std::ranges::none_of(payload, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0x7f || (byte < 0x20 && (byte < '\t' || byte > '\r'));
  });
}

// Nothing, if `cubin` can be handed to a driver.
std::string fault_of(const jit::Cubin& cubin) {
  if (cubin.kernel.empty()) return "names no kernel";
  if (cubin.payload.empty()) return "holds no code";
  if (cubin.kind == jit::PayloadKind::cubin) return is_cubin(cubin.payload) ? "" : "holds something that is no cubin";
  if (cubin.kind == jit::PayloadKind::ptx) return is_ptx(cubin.payload) ? "" : "holds something that is no PTX";
  return "holds code of an unknown kind";
}

// Constant for the life of the library.
const Key& own_templates() {
  static const Key digest = digest_of(jit::templates());
  return digest;
}

}  // namespace

std::vector<char> serialize(const Key& key, const jit::Program& program, const jit::Cubin& cubin) {
  FieldWriter out;
  out.bytes().reserve(cubin.payload.size() + program.text.size() + 1024);
  out.raw(magic);
  out.number(schema);
  out.key(key);
  out.key(own_templates());
  out.number(static_cast<std::uint32_t>(program.arch.major));
  out.number(static_cast<std::uint32_t>(program.arch.minor));
  out.number(static_cast<std::uint8_t>(program.arch.suffix));
  out.text(program.text);
  out.text(program.name);
  out.number(std::uint64_t{program.options.size()});
  for (const std::string& option : program.options) out.text(option);
  out.number(static_cast<std::uint8_t>(cubin.kind));
  out.text(cubin.compiler);
  out.text(cubin.kernel);
  out.number(cubin.resources.registers);
  out.number(cubin.resources.stack_bytes);
  out.number(cubin.resources.spill_bytes);
  out.number(cubin.resources.shared_bytes);
  out.text(cubin.payload);
  out.key(digest_of(std::span<const char>(out.bytes())));
  return std::move(out.bytes());
}

bool begins_as_entry(std::span<const char> bytes) noexcept {
  return bytes.size() >= magic.size() && std::ranges::equal(bytes.first(magic.size()), magic);
}

std::variant<Description, Rejection> inspect(std::span<const char> bytes) {
  if (bytes.empty()) return Rejection{"is empty"};
  FieldReader in(bytes.first(bytes.size() - std::min(bytes.size(), checksum_bytes)));
  const auto start = in.raw(magic.size());
  const auto version = in.number<std::uint32_t>();
  if (in.failed()) return Rejection{"is truncated"};
  if (!std::ranges::equal(start, magic)) return Rejection{"is no cache entry"};
  FieldReader checksum(bytes.last(checksum_bytes));
  if (checksum.key() != digest_of(bytes.first(bytes.size() - checksum_bytes))) return Rejection{"has a wrong checksum"};
  if (version != schema)
    return Rejection{"has schema " + std::to_string(version) + ", not " + std::to_string(schema), true};

  // What follows cannot fail for a file that this library wrote; but a checksum proves no author.
  Description entry;
  entry.key = in.key();
  entry.templates = in.key();
  const auto major = in.number<std::uint32_t>();
  const auto minor = in.number<std::uint32_t>();
  constexpr std::uint32_t max_int = std::numeric_limits<int>::max();
  if (major > max_int || minor > max_int) return Rejection{"names no architecture"};
  entry.program.arch = {static_cast<int>(major), static_cast<int>(minor), static_cast<char>(in.number<std::uint8_t>())};
  entry.program.text = in.text();
  entry.program.name = in.text();
  const auto options = in.number<std::uint64_t>();
  if (options > max_options) return Rejection{"has too many options"};
  for (std::uint64_t i = 0; i < options && !in.failed(); ++i) entry.program.options.push_back(in.text());
  entry.cubin.kind = jit::PayloadKind{in.number<std::uint8_t>()};
  entry.cubin.compiler = in.text();
  entry.cubin.kernel = in.text();
  entry.cubin.resources.registers = in.number<std::uint32_t>();
  entry.cubin.resources.stack_bytes = in.number<std::uint32_t>();
  entry.cubin.resources.spill_bytes = in.number<std::uint32_t>();
  entry.cubin.resources.shared_bytes = in.number<std::uint32_t>();
  const auto payload = in.field();
  if (!in.at_end()) return Rejection{"has fields that do not fit its length"};
  entry.cubin.payload.assign(payload.begin(), payload.end());
  if (std::string fault = fault_of(entry.cubin); !fault.empty()) return Rejection{std::move(fault)};
  return entry;
}

std::variant<jit::Cubin, Rejection> parse(std::span<const char> bytes, const Key& key, const jit::Program& program) {
  auto inspected = inspect(bytes);
  if (auto* rejection = std::get_if<Rejection>(&inspected)) return std::move(*rejection);
  auto& entry = std::get<Description>(inspected);
  if (entry.key != key) return Rejection{"is the entry of another key, " + entry.key.hex()};
  // Equal keys of different programs are a collision: as good as impossible, and cheap to exclude.
  if (entry.program.arch != program.arch) return Rejection{"was made for another architecture"};
  if (entry.program.name != program.name) return Rejection{"was made for another kernel, " + entry.program.name};
  if (entry.program.text != program.text) return Rejection{"was made from another program"};
  if (entry.program.options != program.options) return Rejection{"was made with other compiler options"};
  if (entry.templates != own_templates()) return Rejection{"was made from other templates"};
  return std::move(entry.cubin);
}

}  // namespace jitsoftmax::cache
