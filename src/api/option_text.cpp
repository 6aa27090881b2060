#include "api/option_text.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <sstream>
#include <utility>

#include "base/size.hpp"
#include "base/users.hpp"

namespace jitsoftmax {
namespace {

struct Value {
  const std::string& text;
  const std::string& label;
};

[[noreturn]] void refuse(const Value& value, const std::string& advice) {
  throw Error(ErrorCode::invalid_argument, value.label + " is '" + value.text + "'; " + advice);
}

OnMiss parse_on_miss(const Value& value) {
  if (value.text == "compile") return OnMiss::compile;
  if (value.text == "background") return OnMiss::background;
  if (value.text == "fail") return OnMiss::fail;
  refuse(value, "known: compile, background, fail");
}

MaskedRows parse_masked_rows(const Value& value) {
  if (value.text == "nan") return MaskedRows::nan;
  if (value.text == "zero") return MaskedRows::zero;
  refuse(value, "known: nan, zero");
}

bool parse_bool(const Value& value) {
  if (value.text == "true") return true;
  if (value.text == "false") return false;
  refuse(value, "known: true, false");
}

std::optional<std::int64_t> parse_limit(const Value& value) {
  if (value.text == "none") return std::nullopt;
  if (const auto bytes = base::parse_size(value.text)) return bytes;
  refuse(value, "write bytes, as 500000 or 64MB, or none");
}

std::vector<std::uint32_t> parse_owners(const Value& value) {
  std::vector<std::uint32_t> owners;
  for (const std::string& user : split(value.text, ',')) {
    const auto id = base::user_id(user);
    if (!id) refuse(value, "there is no user '" + user + "'; write names or ids, with commas between them");
    owners.push_back(*id);
  }
  return owners;
}

std::int64_t parse_count(const Value& value, std::int64_t least) {
  std::int64_t count = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, count);
  if (error == std::errc{} && stop == end && count >= least && count <= std::numeric_limits<int>::max()) return count;
  refuse(value, "write a number, at least " + std::to_string(least));
}

std::optional<std::size_t> parse_max_kernels(const Value& value) {
  if (value.text == "none") return std::nullopt;
  return static_cast<std::size_t>(parse_count(value, 1));
}

struct Setter {
  std::string_view name;
  void (*set)(Options& options, const Value& value);
};

constexpr std::array setters{
    Setter{"device", [](Options& options, const Value& value) { options.device = Device::parse(value.text); }},
    Setter{"on_miss", [](Options& options, const Value& value) { options.on_miss = parse_on_miss(value); }},
    Setter{"masked_rows", [](Options& options, const Value& value) { options.masked_rows = parse_masked_rows(value); }},
    Setter{"deterministic", [](Options& options, const Value& value) { options.deterministic = parse_bool(value); }},
    Setter{"variant", [](Options& options, const Value& value) { options.variant.name = value.text; }},
    Setter{"use_records", [](Options& options, const Value& value) { options.use_records = parse_bool(value); }},
    Setter{"cache_dir", [](Options& options, const Value& value) { options.cache_dir = value.text; }},
    Setter{"cache_layers", [](Options& options, const Value& value) { options.cache_layers = split(value.text, ':'); }},
    Setter{"cache_limit", [](Options& options, const Value& value) { options.cache_limit = parse_limit(value); }},
    Setter{"trusted_owners",
           [](Options& options, const Value& value) { options.trusted_owners = parse_owners(value); }},
    Setter{"specialize_after",
           [](Options& options, const Value& value) { options.specialize_after = parse_count(value, 1); }},
    Setter{"workers",
           [](Options& options, const Value& value) { options.workers = static_cast<int>(parse_count(value, 0)); }},
    Setter{"max_kernels", [](Options& options, const Value& value) { options.max_kernels = parse_max_kernels(value); }},
    Setter{"programmatic_launch",
           [](Options& options, const Value& value) { options.programmatic_launch = parse_bool(value); }},
    Setter{"nvrtc", [](Options& options, const Value& value) { options.nvrtc = value.text; }},
};

}  // namespace

void set_option(Options& options, std::string_view name, const std::string& value, const std::string& label) {
  std::string known;
  for (const Setter& setter : setters) {
    if (setter.name == name) return setter.set(options, {value, label});
    known += (known.empty() ? "" : ", ") + std::string(setter.name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no option '" + std::string(name) + "'; known: " + known);
}

std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> items;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, separator);) {
    if (!item.empty()) items.push_back(std::move(item));
  }
  return items;
}

}  // namespace jitsoftmax
