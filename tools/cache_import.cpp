// `jitsoftmax cache import`: adds what an exported file holds to the writable directory.
#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <variant>

#include "base/files.hpp"
#include "cache.hpp"
#include "cache/pack.hpp"
#include "cache/store.hpp"
#include "exit_code.hpp"
#include "interrupt.hpp"
#include "jit/source.hpp"
#include "print_json.hpp"
#include "tune/records.hpp"

namespace jitsoftmax::tools {
namespace {

struct Imported {
  std::size_t added = 0;
  std::size_t present = 0;
};

std::vector<char> read(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  base::FileSystem::Info info;
  std::vector<char> bytes;
  if (!error) bytes = base::file_system().read(target, cache::max_pack_bytes, info, error);
  if (error == std::errc::invalid_argument)
    throw Failure(exit_code::usage, "'" + path + "' is no regular file; name one that 'cache export' wrote");
  if (error) throw Failure(exit_code::usage, fmt::format("'{}' cannot be read: {}", path, error.message()));
  return bytes;
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Failure(exit_code::usage, fmt::format("nothing was imported: '{}' {}", path, reason));
}

cache::Pack verified(const std::string& path, std::span<const char> bytes) {
  auto read = cache::read_pack(bytes);
  if (const auto* rejection = std::get_if<cache::Rejection>(&read)) refuse(path, rejection->reason);
  return std::get<cache::Pack>(std::move(read));
}

std::vector<tune::KeyedRecord> verified_records(const std::string& path, const cache::Pack& pack,
                                                const std::string& templates) {
  std::vector<tune::KeyedRecord> records;
  std::set<std::string> seen;
  for (const std::span<const char> text : pack.records) {
    auto parsed = tune::parse_keyed(text, templates);
    if (const auto* refused = std::get_if<tune::NoRecord>(&parsed))
      refuse(path, "has a tuning record that " + refused->reason);
    records.push_back(std::get<tune::KeyedRecord>(std::move(parsed)));
    const std::string name = tune::describe(records.back().key);
    if (!seen.insert(name).second) refuse(path, "has two tuning records of " + name);
  }
  return records;
}

// Where it is to go, as the library would write there.
std::string destination(const Options& options, const cache::Pack& pack) {
  std::string directory = cache::resolve_directory(options.cache_dir);
  if (directory.empty()) {
    throw Failure(exit_code::no_cache,
                  "there is no writable cache directory to import into; name one with --cache-dir or "
                  "JITSOFTMAX_CACHE_DIR");
  }
  std::size_t bytes = 0;
  for (const std::span<const char> entry : pack.entries) bytes += entry.size();
  if (options.cache_limit && bytes > static_cast<std::size_t>(*options.cache_limit)) {
    throw Failure(exit_code::no_cache, fmt::format("nothing was imported: its kernels take {} bytes, and "
                                                   "JITSOFTMAX_CACHE_LIMIT allows {}",
                                                   bytes, *options.cache_limit));
  }
  return directory;
}

Imported add_entries(const cache::Pack& pack, const Options& options, const std::string& directory) {
  cache::Store store(
      {.directory = directory, .log = options.log, .limit = options.cache_limit, .trusted = options.trusted_owners});
  Imported result;
  for (const std::span<const char> bytes : pack.entries) {
    stop_if_interrupted();
    const auto inspected = cache::inspect(bytes);
    const auto& entry = std::get<cache::Description>(inspected);  // read_pack() has verified it
    if (store.find(entry.key, entry.program)) {
      ++result.present;
    } else if (store.put(entry.key, entry.program, entry.cubin)) {
      ++result.added;
    } else {
      throw Failure(exit_code::no_cache, fmt::format("{} cannot be written, after {}; import again once it can",
                                                     store.options().directory, plural(result.added, "kernel")));
    }
  }
  return result;
}

void add_records(const std::vector<tune::KeyedRecord>& found, const Options& options, const std::string& directory,
                 const std::string& templates) {
  tune::Records records(
      {.directory = directory, .templates = templates, .log = options.log, .trusted = options.trusted_owners});
  for (const tune::KeyedRecord& record : found) {
    stop_if_interrupted();
    if (!records.add(record.key, record.record))
      throw Failure(exit_code::no_cache, "tuning records cannot be written to " + directory);
  }
}

}  // namespace

int cache_import(const CacheRequest& request) {
  const InterruptScope interrupts;
  const Options options = request.engine.options();
  const std::vector<char> bytes = read(request.file);
  const std::string templates = cache::digest_of(jit::templates()).hex();
  const cache::Pack pack = verified(request.file, bytes);
  const std::vector<tune::KeyedRecord> records = verified_records(request.file, pack, templates);

  const std::string directory = destination(options, pack);
  const Imported imported = add_entries(pack, options, directory);
  add_records(records, options, directory, templates);
  if (request.json) {
    print({{"file", request.file},
           {"directory", directory},
           {"kernels", pack.entries.size()},
           {"added", imported.added},
           {"already_there", imported.present},
           {"records", records.size()}});
  } else {
    fmt::print("{} and {} from {}: {} added to {}, {} already there\n", plural(pack.entries.size(), "kernel"),
               plural(records.size(), "tuning record"), request.file, imported.added, directory, imported.present);
  }
  return exit_code::done;
}

}  // namespace jitsoftmax::tools
