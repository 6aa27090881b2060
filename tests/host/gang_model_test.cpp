// The executor runs the blocks of a gang together; what they post to each other gets there, and a wait for
// what nobody posts is an error.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "host/wrong_kernel.hpp"
#include "kernel_templates/gang.cuh"

namespace jitsoftmax::host_test {
namespace {

using kernels::Gang;
using kernels::Partial;

constexpr kernels::Config config{.threads = 32, .vector = 1, .elements = 1, .blocked = true};
using Group = kernels::RowGroup<config, kernels::PartOf<kernels::Runtime>, float>;

plan::Geometry gangs(unsigned size, unsigned count) { return {.grid = size * count, .block = 32, .gang = size}; }

struct Workspace {
  explicit Workspace(int size, int count)
      : words(static_cast<std::size_t>(kernels::gang_words(size, 4) * count)), arguments{.gang = size} {
    arguments.workspace = words.data();
  }
  std::vector<unsigned long long> words;
  kernels::Arguments arguments;
};

// Every block has its rank + 1 as a maximum, and 1 of that; `turns` times.
void agree(const kernels::Arguments& arguments, int turns) {
  const Group group;
  kernels::wait_for_predecessor({});
  Gang<float> gang(arguments);
  const auto rank = static_cast<int>(kernels::block_index() % arguments.gang);
  for (int turn = 0; turn < turns; ++turn) {
    const auto largest = static_cast<float>(arguments.gang + turn);
    const Partial<float> whole = gang.merge(group, Partial<float>{static_cast<float>(rank + 1 + turn), 1});
    CHECK(whole.max == largest);
    CHECK(whole.sum >= 1);
    CHECK(whole.sum < 1.6F);  // the sum of exp(-k)
    group.reuse();
  }
  gang.leave();
}

TEST_CASE("every block of a gang has what all of them have, launch after launch over one workspace") {
  for (const int size : {1, 2, 5, 40}) {
    Workspace workspace(size, 3);
    for (std::uint64_t launch = 0; launch < 20; ++launch) {
      run_grid(
          gangs(static_cast<unsigned>(size), 3), [&] { agree(workspace.arguments, 3); }, seed() + launch);
    }
    CHECK(workspace.words.front() == 60);  // turns, for the next launch to go on from
  }
}

TEST_CASE("a block that does not come to a turn is missed") {
  Workspace workspace(3, 1);
  const auto kernel = [&] {
    if (kernels::block_index() != 1) agree(workspace.arguments, 1);
  };
  CHECK(says(caught(gangs(3, 1), kernel), "waits for what another block of its gang is to post, and nobody does"));
}

TEST_CASE("a gang whose last launch did not leave its turn behind takes old words for new ones") {
  Workspace workspace(2, 1);
  run_grid(
      gangs(2, 1), [&] { agree(workspace.arguments, 2); }, seed());
  workspace.words.front() = 0;
  // The words of the first turn are still there: a block may go on with them before the other one has posted.
  int stale = 0;
  for (std::uint64_t order = 0; order < 50; ++order) {
    workspace.words.front() = 0;
    run_grid(
        gangs(2, 1),
        [&] {
          const Group group;
          kernels::wait_for_predecessor({});
          Gang<float> gang(workspace.arguments);
          const auto mine = static_cast<float>(order * 2 + static_cast<std::uint64_t>(kernels::block_index()) + 200);
          if (gang.merge(group, Partial<float>{mine, 1}).max != static_cast<float>(order * 2 + 201)) ++stale;
        },
        seed() + order);
  }
  CHECK(stale > 0);
}

}  // namespace
}  // namespace jitsoftmax::host_test
