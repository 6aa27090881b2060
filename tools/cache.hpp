// What the subcommands of `jitsoftmax cache` share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"

namespace jitsoftmax::tools {

struct CacheRequest {
  EngineOptions engine;
  bool json = false;

  // verify, export
  std::string shapes;
  std::vector<std::string> archs;

  // export, import
  std::string file;

  // prune: one of the three
  std::optional<std::string> limit;  // bytes
  std::optional<std::int64_t> older_than_days;
  bool all = false;
  bool dry_run = false;
};

struct CacheDirectory {
  std::string path;
  bool writable = false;
};

// In the order in which kernels are looked for; absolute.
[[nodiscard]] std::vector<CacheDirectory> cache_directories(const Options& options);

// "belongs to root, and nobody else may write to it": why a directory is trusted, as a clause.
[[nodiscard]] std::string ownership(const std::string& path);

[[nodiscard]] const char* kind_of(const CacheDirectory& directory) noexcept;  // "read-only", "writable"
[[nodiscard]] std::string plural(std::size_t count, const char* noun);        // "1 entry" is plural(1, "entry")
[[nodiscard]] std::string utc(std::int64_t seconds);                          // "2024-02-29T12:00:00Z"

// The command that compiles what the request's shapes need.
[[nodiscard]] std::string warmup_command(const CacheRequest& request);

// Each returns the exit code.
int cache_path(const CacheRequest& request);
int cache_list(const CacheRequest& request);
int cache_verify(const CacheRequest& request);
int cache_prune(const CacheRequest& request);
int cache_export(const CacheRequest& request);
int cache_import(const CacheRequest& request);

}  // namespace jitsoftmax::tools
