// Promise: Options::programmatic_launch lets each kernel begin before the one that precedes it on the stream has ended,
// where the GPU knows that and the launch is not cooperative; without it no launch says so.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cuda/stream.hpp"
#include "plan/choice.hpp"
#include "stand_in/engine_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

Options options_with(bool programmatic, const std::string& family = "") {
  Options options = stand_in_options();
  options.programmatic_launch = programmatic;
  if (!family.empty()) options.variant.family = family;
  return options;
}

// A problem and rows whose launch is of a kind.
struct Case {
  std::string kernel;  // part of its name
  Problem problem;
  bool cluster;
  std::string family = {};
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"registers", {.cols = 1000}, false},
      {"registers", {.cols = 65536}, true},
      {"looped", {.cols = 1000}, false, "looped"},
      {"safe", {.cols = 1000}, false, "safe"},
      {"staged", {.cols = 8192}, false, "staged"},
      {"strided_registers", {.cols = 4096, .layout = Layout::strided}, true},
      {"strided<", {.cols = 100000, .layout = Layout::strided}, false},
  };
  return all;
}

stand_in::Launch only_launch() {
  const std::vector<stand_in::Launch> launches = stand_in::take_launches();
  REQUIRE(launches.size() == 1);
  // The kernel knows, and waits only then.
  CHECK(launches.front().arguments.programmatic == (launches.front().programmatic ? 1 : 0));
  return launches.front();
}

// Every device for a scope.
class ComputeCapability {
 public:
  explicit ComputeCapability(int major) { stand_in::set_compute_capability(major); }
  ~ComputeCapability() { stand_in::set_compute_capability(9); }
  ComputeCapability(const ComputeCapability&) = delete;
  ComputeCapability& operator=(const ComputeCapability&) = delete;
};

}  // namespace

TEST_CASE("the attribute comes with every launch of an engine that opted in, beside a cluster's, and else with none") {
  const CurrentDevice device;
  for (const Case& c : cases()) {
    for (const bool programmatic : {true, false}) {
      CAPTURE(c.kernel);
      CAPTURE(programmatic);
      Engine engine(options_with(programmatic, c.family));
      const Kernel kernel = engine.prepare(c.problem);
      for (const bool handle : {true, false}) {
        (void)stand_in::take_launches();
        if (handle) {
          kernel.launch(some_rows());
        } else {
          engine.softmax(c.problem, some_rows());
        }
        const stand_in::Launch launch = only_launch();
        CHECK(has(launch.kernel, c.kernel));
        CHECK(launch.programmatic == programmatic);
        CHECK((launch.cluster > 1) == c.cluster);
        CHECK_FALSE(launch.cooperative);
        CHECK(launch.plain == (!programmatic && !c.cluster));
      }
    }
  }
}

TEST_CASE("a kernel keeps the choice of the engine that made it") {
  const CurrentDevice device;
  for (const bool programmatic : {true, false}) {
    Kernel kernel;
    {
      Engine engine(options_with(programmatic));
      kernel = engine.prepare({.cols = 1000});
    }
    const Engine other(options_with(!programmatic));
    (void)stand_in::take_launches();
    kernel.launch(some_rows());
    CHECK(only_launch().programmatic == programmatic);
  }
}

TEST_CASE("the generic kernel has it too, and so has a launch into a graph") {
  const CurrentDevice device;
  Options options = options_with(true);
  options.on_miss = OnMiss::background;
  options.specialize_after = 1'000'000'000;
  Engine engine(options);
  engine.prepare_generic({.cols = 1000});
  (void)stand_in::take_launches();
  engine.softmax({.cols = 1000}, some_rows());
  const stand_in::Launch generic = only_launch();
  CHECK(is_generic(generic));
  CHECK(generic.programmatic);

  const Kernel kernel = engine.prepare({.cols = 1001});
  const cuda::OwnedStream stream = cuda::make_stream();
  const cuda::OwnedGraphExec graph = cuda::capture(stream.get(), [&] { kernel.launch(some_rows(), stream.get()); });
  CHECK(stand_in::take_launches().empty());
  cuda::check(cuda::driver().GraphLaunch(graph.get(), stream.get()), "cuGraphLaunch");
  CHECK(only_launch().programmatic);
}

TEST_CASE("a cooperative launch has it never; a split row that one block holds is none") {
  const CurrentDevice device;
  Engine engine(options_with(true, "split"));
  for (const std::int64_t cols : {1'000'000, 1000}) {
    CAPTURE(cols);
    const Kernel kernel = engine.prepare({.cols = cols});
    (void)stand_in::take_launches();
    kernel.launch(some_rows());
    const stand_in::Launch launch = only_launch();
    CHECK(has(launch.kernel, "split"));
    CHECK(launch.cooperative == (cols > 1000));
    CHECK(launch.programmatic == !launch.cooperative);
  }
}

TEST_CASE("before sm_90 it is not asked for, and launches are plain") {
  const ComputeCapability eight(8);
  const CurrentDevice device;
  Engine engine(options_with(true));
  for (const std::int64_t cols : {1000, 4096}) {
    const Kernel kernel = engine.prepare({.cols = cols});
    (void)stand_in::take_launches();
    kernel.launch(some_rows());
    const stand_in::Launch launch = only_launch();
    CHECK_FALSE(launch.programmatic);
    CHECK(launch.plain);
  }
}

TEST_CASE("it is off unless it is asked for, also by name and by the environment") {
  CHECK_FALSE(Options().programmatic_launch);
  CHECK_FALSE(Options::from_environment().programmatic_launch);
  const char* const variable = "JITSOFTMAX_PROGRAMMATIC_LAUNCH";
  ::setenv(variable, "true", 1);  // NOLINT(concurrency-mt-unsafe)
  CHECK(Options::from_environment().programmatic_launch);
  ::setenv(variable, "false", 1);
  CHECK_FALSE(Options::from_environment().programmatic_launch);
  ::setenv(variable, "1", 1);
  CHECK(code_of([] { (void)Options::from_environment(); }) == ErrorCode::invalid_argument);
  ::unsetenv(variable);
}
