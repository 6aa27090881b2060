// Promise: the search finds the fastest of many kernels among noisy times, spends little on slow ones, and
// decides ties in the same way every time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tune/search.hpp"

using namespace jitsoftmax::tune;

namespace {

// Kernels of known times on a device whose clocks change from call to call.
struct Simulation {
  std::vector<double> seconds;
  double noise = 0;  // standard deviation of one round, relative
  std::mt19937 random;
  std::vector<int> rounds;  // that each candidate was timed for
  int calls = 0;

  Simulation(std::vector<double> times, double deviation, std::mt19937::result_type seed)
      : seconds(std::move(times)), noise(deviation), random(seed), rounds(seconds.size()) {}

  TimeTogether timer() {
    return [this](const std::vector<std::size_t>& which, int count) {
      ++calls;
      const double clock = std::uniform_real_distribution<double>(0.8, 1.2)(random);
      std::vector<Timing> timings;
      for (const std::size_t candidate : which) {
        rounds[candidate] += count;
        Timing timing;
        for (int i = 0; i < count; ++i) {
          const double error = noise == 0 ? 0 : std::normal_distribution<double>(0, noise)(random);
          timing.rounds.push_back(seconds[candidate] * clock * std::exp(error));
        }
        timings.push_back(std::move(timing));
      }
      return timings;
    };
  }
};

std::vector<std::size_t> indices(std::size_t first, std::size_t last) {
  std::vector<std::size_t> result(last - first);
  std::iota(result.begin(), result.end(), first);
  return result;
}

// 75 kernels, as long rows have: few near the best, many far off.
std::vector<double> typical_times(std::mt19937& random) {
  std::vector<double> times;
  for (int i = 0; i < 75; ++i) {
    times.push_back(30e-6 * (1 + std::exponential_distribution<double>(1.5)(random)));
  }
  return times;
}

std::size_t winner(const std::vector<Ranked>& ranking, const std::string& preferred = "") {
  std::vector<Contender> finalists;
  for (const Ranked& ranked : ranking) {
    if (ranked.finalist) finalists.push_back({std::to_string(ranked.candidate), ranked.seconds.median});
  }
  return ranking[fastest(finalists, preferred)].candidate;
}

}  // namespace

TEST_CASE("the winner is within 2 % of the best, however the candidates arrive") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  int far = 0;
  constexpr int trials = 200;
  for (int trial = 0; trial < trials; ++trial) {
    Simulation simulation(typical_times(random), 0.01, random());
    Search search(simulation.timer(), {});
    const std::size_t batch = std::size_t{1} << (trial % 8);  // 1, 2, ... all at once
    for (std::size_t i = 0; i < simulation.seconds.size(); i += batch) {
      search.add(indices(i, std::min(i + batch, simulation.seconds.size())));
    }
    const std::vector<Ranked> ranking = search.finish();
    REQUIRE(ranking.size() == simulation.seconds.size());
    const double best = *std::min_element(simulation.seconds.begin(), simulation.seconds.end());
    if (simulation.seconds[winner(ranking)] > 1.02 * best) ++far;
  }
  CHECK(far <= trials / 50);
}

TEST_CASE("two searches pick the same kernel, or kernels within 2 % of each other") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  int apart = 0;
  constexpr int trials = 100;
  for (int trial = 0; trial < trials; ++trial) {
    const std::vector<double> times = typical_times(random);
    double picked[2];
    for (double& seconds : picked) {
      Simulation simulation(times, 0.01, random());
      Search search(simulation.timer(), {});
      search.add(indices(0, times.size()));
      seconds = times[winner(search.finish())];
    }
    if (std::max(picked[0], picked[1]) > 1.02 * std::min(picked[0], picked[1])) ++apart;
  }
  CHECK(apart <= trials / 50);
}

TEST_CASE("slow candidates are timed for the first rounds only, and the work is a small multiple of that") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::vector<double> times = typical_times(random);
  times[0] = 30e-6;  // the anchor
  Simulation simulation(times, 0.02, random());
  const SearchOptions options;
  Search search(simulation.timer(), options);
  search.add(indices(0, times.size()));
  (void)search.finish();
  for (std::size_t i = 0; i < times.size(); ++i) {
    CAPTURE(i);
    if (times[i] > 1.7 * 30e-6) CHECK(simulation.rounds[i] == options.first_rounds);
  }
  const int total = std::accumulate(simulation.rounds.begin(), simulation.rounds.end(), 0);
  CHECK(total < 6 * options.first_rounds * static_cast<int>(times.size()));
}

TEST_CASE("far slower ones are out after the first rounds however few there are; near ones are halved") {
  const SearchOptions options;
  Simulation few({1e-6, 2e-6, 1.1e-6, 3e-6}, 0, 1);
  Search small(few.timer(), options);
  small.add(indices(0, 4));
  (void)small.finish();
  const int whole = options.first_rounds + options.final_rounds;
  CHECK(few.rounds == std::vector<int>{whole, options.first_rounds, whole, options.first_rounds});

  Simulation near(std::vector<double>(64, 1e-6), 0, 1);
  Search large(near.timer(), options);
  large.add(indices(0, 64));
  (void)large.finish();
  CHECK(std::accumulate(near.rounds.begin(), near.rounds.end(), 0) < 5 * options.first_rounds * 64);
}

TEST_CASE("without noise the order is exact, and every time is on the scale of the final rounds") {
  Simulation simulation({4e-6, 3e-6, 9e-6, 1e-6, 2e-6}, 0, 1);
  Search search(simulation.timer(), {.cut = 100, .finalists = 2});
  search.add({0, 1});
  search.add({2, 3, 4});
  const std::vector<Ranked> ranking = search.finish();
  std::vector<std::size_t> order;
  for (const Ranked& ranked : ranking) order.push_back(ranked.candidate);
  CHECK(order == std::vector<std::size_t>{3, 4, 0, 1, 2});  // 0 is the anchor and so a finalist
  for (const Ranked& ranked : ranking) {
    CHECK(ranked.finalist == (ranked.candidate == 3 || ranked.candidate == 4 || ranked.candidate == 0));
    CHECK(ranked.seconds.median / ranking[0].seconds.median ==
          doctest::Approx(simulation.seconds[ranked.candidate] / 1e-6));
    CHECK(ranked.seconds.p10 <= ranked.seconds.median);
    CHECK(ranked.seconds.median <= ranked.seconds.p90);
  }
  CHECK(ranking[0].seconds.rounds == SearchOptions{}.final_rounds);
  CHECK(ranking[4].seconds.rounds == SearchOptions{}.first_rounds);
}

TEST_CASE("equal times: the built-in choice, else the first name, and always the same") {
  Simulation simulation(std::vector<double>(40, 1e-6), 0, 1);
  for (int run = 0; run < 3; ++run) {
    Search search(simulation.timer(), {});
    search.add(indices(0, 40));
    const std::vector<Ranked> ranking = search.finish();
    CHECK(ranking[0].candidate == 0);
    CHECK(winner(ranking, "3") == 3);
    CHECK(winner(ranking) == 0);
  }
  const std::vector<Contender> near{{"c", 1.0}, {"b", 1.009}, {"a", 1.02}};
  CHECK(fastest(near, "") == 1);
  CHECK(fastest(near, "c") == 0);
  CHECK(fastest(near, "a") == 1);  // the built-in choice wins ties, not races
}

TEST_CASE("one candidate, and none") {
  Simulation simulation({1e-6}, 0, 1);
  Search one(simulation.timer(), {});
  one.add({0});
  CHECK(one.finish().size() == 1);
  Search none(simulation.timer(), {});
  none.add({});
  CHECK(none.finish().empty());
}
