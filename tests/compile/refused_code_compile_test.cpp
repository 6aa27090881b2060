// An entry that the driver refuses is compiled afresh, once, and replaced where that may be done.
#include <doctest/doctest.h>

#include "nvrtc.hpp"
#include "refused_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

// Skips the program where there is no NVRTC.
Options with_compiler(Options options) {
  (void)compiler_or_skip();
  options.nvrtc = nvrtc_path();
  return options;
}

}  // namespace

TEST_CASE("a refused entry of the writable directory is compiled afresh and replaced, with one warning") {
  RefusedCase test;
  test.fill("own", 'a');
  Code code(with_compiler(test.options({}, "own")));
  PickyLoader loader("a");
  const std::vector<char> loaded = load_for_launch(code, test, loader);
  CHECK(loader.offered == "a*");
  CHECK(test.warnings.size() == 1);
  const Stats stats = stats_of(code);
  CHECK(stats.disk_hits == 0);
  CHECK(stats.compiles == 1);
  CHECK(stats.rejected_entries == 1);

  const auto replaced = cache::Store({.directory = test.directory / "own"}).find(test.key, test.program);
  REQUIRE(replaced);
  CHECK(replaced->payload == loaded);
  CHECK(load_for_launch(code, test, loader) == loaded);
  CHECK(loader.offered == "a**");
  CHECK(stats_of(code).compiles == 1);
  CHECK(test.warnings.size() == 1);
}

TEST_CASE("a refused entry of a layer is compiled once for all processes to come, and stays") {
  RefusedCase test;
  test.fill("layer", 'a');
  const Options options = with_compiler(test.options({"layer"}, "own"));
  for (const std::uint64_t compiles : {1U, 0U}) {
    Code code(options);
    PickyLoader loader("a");
    (void)load_for_launch(code, test, loader);
    CHECK(loader.offered == "a*");
    CHECK(stats_of(code).compiles == compiles);
    CHECK(stats_of(code).disk_hits == 1 - compiles);
  }
  CHECK(test.tag_in("layer") == 'a');
  CHECK(test.warnings.size() == 2);
}

TEST_CASE("if the fresh code is refused too, that is the error") {
  RefusedCase test;
  test.fill("own", 'a');
  Code code(with_compiler(test.options({}, "own")));
  PickyLoader loader("a", true);
  CHECK_THROWS_AS((void)load_for_launch(code, test, loader), cuda::RefusedCode);
  CHECK(loader.offered == "a*");
  CHECK(stats_of(code).compiles == 1);
}
