#include <charconv>
#include <jitsoftmax/engine.hpp>

namespace jitsoftmax {

// "sm_" <major><minor digit>[suffix]: sm_75, sm_90a, sm_100f.
Arch Arch::parse(const std::string& name) {
  const auto refuse = [&]() -> Arch {
    throw Error(ErrorCode::invalid_argument,
                "'" + name + "' is no GPU architecture; write it as sm_90, sm_90a or sm_100f");
  };
  constexpr int prefix = 3;
  if (name.compare(0, prefix, "sm_") != 0) return refuse();
  const char* const begin = name.data() + prefix;
  const char* const end = name.data() + name.size();
  int number = 0;
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (error != std::errc{} || rest - begin < 2 || rest - begin > 3 || number < 0) return refuse();
  Arch arch{number / 10, number % 10, 0};
  if (rest == end) return arch;
  if (rest + 1 != end || (*rest != 'a' && *rest != 'f')) return refuse();
  arch.suffix = *rest;
  return arch;
}

std::string Arch::name() const {
  std::string text = "sm_" + std::to_string(major) + std::to_string(minor);
  if (suffix != 0) text += suffix;
  return text;
}

}  // namespace jitsoftmax
