// Storage that fills up, really: what fits is whole, what does not leaves nothing, and there is one warning.
#include <doctest/doctest.h>

#include "cache/check.hpp"
#include "cache/store.hpp"
#include "cache/walk.hpp"
#include "cache_fixtures.hpp"
#include "small_tmpfs.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::Store;

constexpr std::size_t entry_bytes = 100'000;

// How many of 20 entries are kept; negative: which promise is broken.
int fill(const std::string& directory, const Recorder& recorder, Store& store) {
  int kept = 0;
  for (int i = 0; i < 20; ++i) {
    const jit::Program program = sample_program(i);
    const jit::Cubin cubin = sample_cubin(entry_bytes);
    const bool put = store.put(fixtures::key_of(program), program, cubin);
    const auto found = store.find(fixtures::key_of(program), program);
    if (put != found.has_value()) return -1;
    if (found && !same(*found, cubin)) return -2;
    kept += put ? 1 : 0;
  }
  if (recorder.messages().size() != 1) return -3;
  const cache::Contents contents = cache::walk(directory);
  for (const std::string& path : contents.entries)
    if (cache::check(path).condition != cache::Condition::valid) return -4;
  return files_below(directory).size() == static_cast<std::size_t>(kept) ? kept : -5;
}

}  // namespace

TEST_CASE("a tmpfs of 1 MB that fills up: one warning, no partial file; with room again it is written to again") {
  const Scratch scratch;
  const int result = in_small_tmpfs(scratch.path(), "size=1m", [&] {
    Recorder recorder;
    Store store({.directory = scratch / "cache", .log = recorder.log()});
    const int kept = fill(scratch / "cache", recorder, store);
    if (kept < 0) return -kept;
    if (kept < 5 || kept > 10) return 10;
    // A process that starts when there is room again.
    const jit::Program program = sample_program(19);
    std::filesystem::remove(cache::walk(scratch / "cache").entries.at(0));
    return Store({.directory = scratch / "cache"}).put(fixtures::key_of(program), program, sample_cubin(entry_bytes))
               ? 0
               : 11;
  });
  skip_without_tmpfs(result);
  CHECK(result == 0);
}

TEST_CASE("a file system that runs out of inodes is as good as full") {
  const Scratch scratch;
  const int result = in_small_tmpfs(scratch.path(), "size=16m,nr_inodes=12", [&] {
    Recorder recorder;
    Store store({.directory = scratch / "cache", .log = recorder.log()});
    const int kept = fill(scratch / "cache", recorder, store);
    return kept < 0 ? -kept : kept > 0 && kept < 10 ? 0 : 10;
  });
  skip_without_tmpfs(result);
  CHECK(result == 0);
}
