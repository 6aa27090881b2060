// `jitsoftmax cache`: its command line, and what its subcommands share.
#include "cache.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/files.hpp"
#include "base/shell_word.hpp"
#include "cache/store.hpp"
#include "commands.hpp"

namespace jitsoftmax::tools {
namespace {

using Subcommand = int (*)(const CacheRequest&);

CLI::App& add(CLI::App& cache, Action& action, const std::shared_ptr<CacheRequest>& request, const char* name,
              const char* description, Subcommand run) {
  CLI::App& command = *cache.add_subcommand(name, description);
  request->engine.add_cache_to(command);
  command.add_flag("--json", request->json, "One JSON object instead of lines");
  command.callback([request, &action, run] { action = [request, run] { return run(*request); }; });
  return command;
}

}  // namespace

std::vector<CacheDirectory> cache_directories(const Options& options) {
  const cache::Store store(store_options(options));
  std::vector<CacheDirectory> directories;
  for (const std::string& layer : store.options().layers) directories.push_back({layer, false});
  if (!store.options().directory.empty()) directories.push_back({store.options().directory, true});
  return directories;
}

std::string ownership(const std::string& path) {
  std::error_code error;
  const auto owner = base::file_system().directory_info(path, error).owner;
  const std::string name = owner == ::geteuid() ? "this user"
                           : owner == 0         ? "root"
                                                : fmt::format("user {}, who is trusted", owner);
  return fmt::format("belongs to {}, and nobody else may write to it", name);
}

const char* kind_of(const CacheDirectory& directory) noexcept { return directory.writable ? "writable" : "read-only"; }

std::string plural(std::size_t count, const char* noun) {
  std::string_view stem = noun;
  if (count == 1) return fmt::format("1 {}", stem);
  if (!stem.ends_with('y')) return fmt::format("{} {}s", count, stem);
  stem.remove_suffix(1);
  return fmt::format("{} {}ies", count, stem);
}

std::string utc(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  if (::gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds);
  char text[40];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string warmup_command(const CacheRequest& request) {
  std::string command = fmt::format("jitsoftmax warmup --shapes {} --arch {}", base::shell_word(request.shapes),
                                    fmt::join(request.archs, ","));
  if (request.engine.cache_dir) command += " --cache-dir " + base::shell_word(*request.engine.cache_dir);
  return command;
}

void add_cache(CLI::App& program, Action& action) {
  const auto request = std::make_shared<CacheRequest>();
  CLI::App& cache = *program.add_subcommand("cache", "What is in the cache directories; needs no NVRTC and no GPU");
  cache.require_subcommand(1);
  add(cache, action, request, "path", "The cache directories, and why each is used or refused", cache_path);
  add(cache, action, request, "list", "All kernels in them", cache_list);

  CLI::App& verify =
      add(cache, action, request, "verify",
          "Reads and checks every entry, or all that a shapes file needs; deletes nothing", cache_verify);
  CLI::Option* const shapes =
      verify.add_option("--shapes", request->shapes, "Is there what these shapes need? (a file as for warmup)")
          ->type_name("FILE");
  CLI::Option* const archs =
      verify.add_option("--arch", request->archs, "Their architectures, as sm_80,sm_90")->delimiter(',');
  shapes->needs(archs);
  archs->needs(shapes);

  CLI::App& exported = add(cache, action, request, "export",
                           "Writes kernels, and the tuning records that chose them, into one file", cache_export);
  exported.add_option("FILE", request->file, "The file")->required();
  CLI::Option* const wanted =
      exported.add_option("--shapes", request->shapes, "Only what these shapes need (a file as for warmup)")
          ->type_name("FILE");
  wanted->needs(
      exported.add_option("--arch", request->archs, "Only for these architectures, as sm_80,sm_90")->delimiter(','));

  CLI::App& imported =
      add(cache, action, request, "import",
          "Adds what is in an exported file to the writable directory, after it has verified all of it", cache_import);
  imported.add_option("FILE", request->file, "The file")->required();

  CLI::App& prune = add(cache, action, request, "prune",
                        "Removes entries of the writable directory, the least recently used first. Programs that are "
                        "reading one are not disturbed; tuning records stay",
                        cache_prune);
  CLI::Option_group& what = *prune.add_option_group("What is removed");
  what.add_option("--limit", request->limit, "As little as leaves no more than so many bytes, as 500000 or 64MB")
      ->type_name("BYTES");
  what.add_option("--older-than", request->older_than_days, "What was not used for so many days")
      ->check(CLI::Range(0, 36500))
      ->type_name("DAYS");
  what.add_flag("--all", request->all, "Everything");
  what.require_option(1);
  prune.add_flag("--dry-run", request->dry_run, "Only say what would be removed");
}

}  // namespace jitsoftmax::tools
