#include "cache/check.hpp"

#include <utility>
#include <variant>

#include "cache/key.hpp"
#include "cache/store.hpp"
#include "jit/source.hpp"

namespace jitsoftmax::cache {
namespace {

Condition condition_of(Standing standing) noexcept {
  switch (standing) {
    case Standing::trusted:
      return Condition::valid;
    case Standing::missing:
      return Condition::gone;
    case Standing::refused:
      return Condition::refused;
    case Standing::failed:
      break;
  }
  return Condition::unreadable;
}

}  // namespace

Checked check(const std::string& path, base::FileSystem& files, const Owners& trusted) {
  TrustedFile file = read_trusted(path, max_entry_bytes, files, trusted);
  Checked checked{
      .condition = condition_of(file.verdict.standing), .reason = std::move(file.verdict.reason), .info = file.info};
  if (checked.condition != Condition::valid) return checked;

  auto inspected = inspect(file.bytes);
  if (auto* rejection = std::get_if<Rejection>(&inspected)) {
    checked.condition = rejection->other_version ? Condition::other_version : Condition::damaged;
    checked.reason = std::move(rejection->reason);
    return checked;
  }
  auto& entry = std::get<Description>(inspected);
  // The templates are part of the key and not of the entry, so another version's key is taken on trust.
  const bool own = entry.templates == digest_of(jit::templates());
  if (!path.ends_with(entry_path("", entry.key))) {
    checked.condition = Condition::damaged;
    checked.reason = "is the entry of another key, " + entry.key.hex();
  } else if (own && entry.key != key_of(entry.program, jit::templates())) {
    checked.condition = Condition::damaged;
    checked.reason = "was made from another program than its key says";
  } else {
    if (!own) {
      checked.condition = Condition::other_version;
      checked.reason = "was made from other templates";
    }
    checked.entry = std::move(entry);
  }
  return checked;
}

}  // namespace jitsoftmax::cache
