// Store: finds and publishes entries, and decides whom to believe.
#include "cache/store.hpp"

#include <chrono>
#include <filesystem>
#include <span>
#include <utility>
#include <variant>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "cache/entry.hpp"
#include "cache/prune.hpp"

namespace jitsoftmax::cache {
namespace {

// A long-lived process on broken storage must neither flood the log nor grow.
constexpr std::size_t max_reports = 256;

constexpr std::size_t key_digits = 32;
constexpr std::size_t shard_digits = 2;
constexpr std::string_view suffix = ".jsc";

bool is_hex(std::string_view text, std::size_t digits) noexcept {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string shard_path(const std::string& directory, const Key& key) {
  return directory + '/' + key.hex().substr(0, shard_digits);
}

std::string absolute(const std::string& path) {
  std::error_code error;
  std::string result = std::filesystem::absolute(path, error).string();
  return error ? path : result;
}

}  // namespace

Store::Store(StoreOptions options, base::FileSystem& files) : options_(std::move(options)), files_(files) {
  for (std::string& layer : options_.layers) layer = absolute(layer);
  if (!options_.directory.empty()) options_.directory = absolute(options_.directory);
}

std::optional<jit::Cubin> Store::find(const Key& key, const jit::Program& program) noexcept {
  std::optional<Found> found = find_from(0, key, program);
  if (!found) return std::nullopt;
  return std::move(found->cubin);
}

std::optional<Store::Found> Store::find_from(std::size_t place, const Key& key, const jit::Program& program) noexcept {
  try {
    const std::size_t places = options_.layers.size() + (options_.directory.empty() ? 0 : 1);
    for (; place < places; ++place)
      if (auto cubin = find_in(directory_at(place), key, program)) return Found{*std::move(cubin), place};
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory is a miss like any other
  }
  return std::nullopt;
}

std::string Store::reject(std::size_t place, const Key& key, std::string_view reason) {
  std::string path = entry_path(directory_at(place), key);
  reject(path, reason);
  return path;
}

const std::string& Store::directory_at(std::size_t place) const noexcept {
  return place < options_.layers.size() ? options_.layers[place] : options_.directory;
}

bool Store::put(const Key& key, const jit::Program& program, const jit::Cubin& cubin) noexcept {
  try {
    if (options_.directory.empty() || write_failed_.load(std::memory_order_relaxed)) return false;
    const bool published = publish(key, program, cubin);
    if (published && options_.limit) shrink(options_.directory, *options_.limit, files_, options_.trusted);
    return published;
  } catch (...) {
    return false;
  }
}

std::optional<jit::Cubin> Store::find_in(const std::string& directory, const Key& key, const jit::Program& program) {
  if (standing(directory, directory) != Standing::trusted) return std::nullopt;
  if (standing(shard_path(directory, key), directory) != Standing::trusted) return std::nullopt;

  const std::string path = entry_path(directory, key);
  const TrustedFile file = read_trusted(path, max_entry_bytes, files_, options_.trusted);
  const Verdict& verdict = file.verdict;
  if (verdict.standing == Standing::refused) reject(path, verdict.reason);
  if (verdict.standing == Standing::failed)
    report_failure("read entries in", directory, verdict.error, "their kernels are compiled again");
  if (verdict.standing != Standing::trusted) return std::nullopt;
  auto parsed = parse(file.bytes, key, program);
  if (const auto* rejection = std::get_if<Rejection>(&parsed)) {
    reject(path, rejection->reason);
    return std::nullopt;
  }
  if (directory == options_.directory) mark_used(path, file.info);
  return std::get<jit::Cubin>(std::move(parsed));
}

// Not each time: a launch that reads its kernels should not write. That it cannot be done, say on
// read-only storage, is no fault: the entry only looks older than it is.
void Store::mark_used(const std::string& path, const base::FileSystem::Info& info) {
  constexpr std::chrono::hours at_most_once_in{1};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (now - std::chrono::seconds(info.modified) < at_most_once_in) return;
  std::error_code ignored;
  files_.touch(path, ignored);
}

bool Store::publish(const Key& key, const jit::Program& program, const jit::Cubin& cubin) {
  const std::string path = entry_path(options_.directory, key);
  const std::vector<char> bytes = serialize(key, program, cubin);
  // What no find() would accept is not written: a compiler can succeed and make nothing.
  const auto parsed = parse(bytes, key, program);
  const auto* rejection = std::get_if<Rejection>(&parsed);
  if (rejection != nullptr || bytes.size() > std::size_t{max_entry_bytes}) {
    report_once("jitsoftmax: cache does not keep " + program.name + ": its entry " +
                (rejection != nullptr ? rejection->reason : "would be too large"));
    return false;
  }

  const std::string shard = shard_path(options_.directory, key);
  if (!ready(options_.directory) || !ready(shard)) return false;
  std::error_code error;
  const std::string temporary = files_.write_temporary(shard, bytes, error);
  if (error) {
    stop_writing(error);
    return false;
  }
  files_.rename(temporary, path, error);
  if (!error) return true;

  std::error_code ignored;
  files_.remove(temporary, ignored);
  // Two failures are about one entry and no reason to give up the directory.
  if (error == std::errc::is_a_directory) {
    reject(path, not_a_file);
  } else if (error == std::errc::device_or_resource_busy) {  // SMB: another process is reading it
    report_failure("replace entries in", options_.directory, error, "their kernels are kept in memory only");
  } else {
    stop_writing(error);
  }
  return false;
}

// Of a cache directory, or of a shard in it. Reports whatever is neither trusted nor just missing.
Standing Store::standing(const std::string& path, const std::string& directory) {
  const Verdict verdict = directory_verdict(path, files_, options_.trusted);
  if (verdict.standing == Standing::refused) reject(path, verdict.reason);
  if (verdict.standing == Standing::failed)
    report_failure("use", directory, verdict.error, "kernels are compiled again and kept in memory only");
  return verdict.standing;
}

// There, created if need be, and trusted. A directory that is refused is asked about again next
// time: it costs no I/O worth the name, and its owner may set it right.
bool Store::ready(const std::string& path) {
  Standing now = standing(path, options_.directory);
  if (now == Standing::missing) {
    std::error_code error;
    files_.create_directories(path, error);
    if (!error) now = standing(path, options_.directory);
    if (now == Standing::missing) {
      stop_writing(error ? error : std::make_error_code(std::errc::no_such_file_or_directory));
    }
  }
  if (now == Standing::failed) write_failed_.store(true, std::memory_order_relaxed);
  return now == Standing::trusted;
}

void Store::reject(const std::string& path, std::string_view reason) {
  rejected_.fetch_add(1, std::memory_order_relaxed);
  report_once("jitsoftmax: cache does not use " + path + ": it " + std::string(reason));
}

void Store::stop_writing(const std::error_code& error) {
  write_failed_.store(true, std::memory_order_relaxed);
  report_failure("write to", options_.directory, error,
                 "new kernels are kept in memory only. Make it writable, or name another one (Options::cache_dir, "
                 "JITSOFTMAX_CACHE_DIR)");
}

// Names the directory and no entry, so that storage with a fault is reported once and not once an entry.
void Store::report_failure(std::string_view verb, const std::string& directory, const std::error_code& error,
                           std::string_view consequence) {
  report_once("jitsoftmax: cache cannot " + std::string(verb) + ' ' + directory + ": " + error.message() + "; " +
              std::string(consequence));
}

void Store::report_once(std::string message) {
  {
    const std::lock_guard lock(mutex_);
    if (reported_.size() > max_reports || !reported_.insert(message).second) return;
    if (reported_.size() > max_reports) message = "jitsoftmax: further faults of the cache are not reported";
  }
  base::report(options_.log, LogLevel::warning, message);  // unlocked: a callback may use the store
}

std::vector<std::string> Store::faults() const {
  const std::lock_guard lock(mutex_);
  return {reported_.begin(), reported_.end()};
}

std::string resolve_directory(const std::optional<std::string>& option,
                              const std::optional<std::string>& xdg_cache_home,
                              const std::optional<std::string>& home) {
  if (option) return *option;
  if (xdg_cache_home && xdg_cache_home->starts_with('/')) return *xdg_cache_home + "/jitsoftmax";
  // HOME is "/" for users that have none: nothing belongs into /.cache.
  if (home && home->starts_with('/') && home->find_first_not_of('/') != std::string::npos)
    return *home + "/.cache/jitsoftmax";
  return {};
}

std::string resolve_directory(const std::optional<std::string>& option) {
  return resolve_directory(option, base::environment("XDG_CACHE_HOME"), base::environment("HOME"));
}

std::string entry_path(const std::string& directory, const Key& key) {
  return shard_path(directory, key) + '/' + key.hex().substr(shard_digits) + std::string(suffix);
}

bool is_shard(std::string_view name) noexcept { return is_hex(name, shard_digits); }

bool is_entry(std::string_view name) noexcept {
  return name.ends_with(suffix) && is_hex(name.substr(0, name.size() - suffix.size()), key_digits - shard_digits);
}

}  // namespace jitsoftmax::cache
