// Promise: the picks of tuning records replace the built-in choice for the rows that they are for and
// for no others, and a pick is what its spelling says or nothing.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/tuned.hpp"
#include "plan/variants.hpp"

using namespace jitsoftmax;

namespace {

constexpr Arch hopper{9, 0};

const std::vector<Problem> problems = [] {
  std::vector<Problem> list;
  for (const std::int64_t cols : {1, 7, 64, 333, 1024, 4096, 16384, 50257, 131072, 1 << 22}) {
    for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
      for (const Layout layout : {Layout::contiguous, Layout::strided}) {
        list.push_back({.cols = cols, .in = type, .out = type, .layout = layout});
      }
    }
    list.push_back({.cols = cols, .in = DType::bf16, .out = DType::f32, .op = Op::log_softmax});
  }
  return list;
}();

Rows rows_of(const Problem& problem, std::int64_t count, std::int64_t shift) {
  Rows rows;
  rows.in = reinterpret_cast<void*>(std::uintptr_t{1 << 20} + static_cast<std::uintptr_t>(shift * size_of(problem.in)));
  rows.out = reinterpret_cast<void*>(std::uintptr_t{1} << 60);
  rows.count = count;
  rows.in_stride = rows.out_stride = problem.cols;
  return rows;
}

// The kernel that such a launch runs.
std::string run_by(const plan::Bundle& bundle, const Rows& rows) {
  return plan::name_expression(bundle[plan::select(bundle, rows)]);
}

}  // namespace

TEST_CASE("every candidate and every built-in choice is read back from its spelling") {
  for (const Problem& problem : problems) {
    std::vector<plan::Specialization> all = plan::candidates(problem, hopper);
    const plan::Bundle built_in = plan::choose(problem, hopper);
    for (const plan::RowsBucket bucket : {plan::RowsBucket::few, plan::RowsBucket::many}) {
      all.push_back(plan::chosen_for(built_in, plan::fewest_rows(bucket)));
    }
    for (const plan::Specialization& s : all) {
      const std::string name = plan::name_expression(s);
      CAPTURE(name);
      const auto read = plan::specialization_named(problem, name);
      REQUIRE(read);
      CHECK(plan::name_expression(*read) == name);
      CHECK(read->family == s.family);
      CHECK(read->config.shared == s.config.shared);
    }
  }
}

TEST_CASE("a kernel for any number of columns is read back as one") {
  const Problem problem{.cols = 4096};
  plan::Specialization s = plan::generic(problem);
  s.cols = 0;
  const auto read = plan::specialization_named(problem, plan::name_expression(s));
  REQUIRE(read);
  CHECK(read->cols == 0);
  s = plan::chosen_for(plan::choose(problem, hopper), plan::fewest_rows(plan::RowsBucket::many));
  REQUIRE(plan::reads_once(s.family));
  s.cols = 0;  // holds rows of a length that it has to know
  CHECK_FALSE(plan::specialization_named(problem, plan::name_expression(s)));
}

TEST_CASE("a spelling that is damaged, illegal or of another problem is no specialization") {
  const Problem problem{.cols = 4096};
  const std::string name =
      plan::name_expression(plan::chosen_for(plan::choose(problem, hopper), plan::fewest_rows(plan::RowsBucket::many)));
  REQUIRE(plan::specialization_named(problem, name));
  for (std::size_t i = 0; i < name.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(plan::specialization_named(problem, name.substr(0, i)));
    std::string damaged = name;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    CHECK_FALSE(plan::specialization_named(problem, damaged).has_value());
  }
  CHECK_FALSE(plan::specialization_named({.cols = 4097}, name));
  CHECK_FALSE(plan::specialization_named({.cols = 4096, .op = Op::log_softmax}, name));
  CHECK_FALSE(plan::specialization_named({.cols = 4096, .layout = Layout::strided}, name));
  for (const char* wrong :
       {"registers<Config{.threads=2000000000,.rows=2000000000,.vector=4,.elements=8},Static<4096>,float,float,"
        "Softmax>",
        "registers<Config{.threads=128,.rows=1,.vector=0,.elements=32,.shared=32},Static<4096>,float,float,Softmax>",
        "registers<Config{.threads=-128,.rows=1,.vector=4,.elements=32,.shared=32},Static<4096>,float,float,Softmax>",
        "registers<Config{.threads=128,.rows=1,.vector=4,.elements=4,.shared=32},Static<4096>,float,float,Softmax>",
        "registers<Config{.threads=128,.rows=1,.vector=4,.elements=32,.shared=16},Static<4096>,float,float,Softmax>",
        "registers<Config{}", "}<Config{", ""}) {
    CAPTURE(wrong);
    CHECK_FALSE(plan::specialization_named(problem, wrong));
  }
}

TEST_CASE("a pick serves the rows of its bucket at every alignment; the other bucket keeps its kernels") {
  for (const Problem& problem : problems) {
    if (problem.layout == Layout::strided) continue;
    const plan::Bundle built_in = plan::choose(problem, hopper);
    CHECK(plan::with_picks(built_in, {}).size() == built_in.size());
    const plan::Specialization other = plan::candidates(problem, hopper).back();
    const plan::Bundle picked = plan::bundle_of(other, false);
    for (const plan::RowsBucket bucket : {plan::RowsBucket::few, plan::RowsBucket::many}) {
      plan::Tuned tuned;
      (bucket == plan::RowsBucket::few ? tuned.few : tuned.many) = other;
      const bool same =
          plan::name_expression(plan::chosen_for(built_in, plan::fewest_rows(bucket))) == plan::name_expression(other);
      const plan::Bundle bundle = plan::with_picks(built_in, tuned);
      for (const std::int64_t count :
           {std::int64_t{1}, plan::most_few_rows, plan::most_few_rows + 1, std::int64_t{100000}}) {
        for (const std::int64_t shift : {0, 1}) {
          const Rows rows = rows_of(problem, count, shift);
          const plan::Bundle& expected = plan::bucket_of(count) == bucket ? picked : built_in;
          CHECK(run_by(bundle, rows) == run_by(expected, rows));
          const Origin origin = bundle[plan::select(bundle, rows)].origin;
          CHECK((origin == Origin::record) == (plan::bucket_of(count) == bucket && !same));
        }
      }
      if (same) CHECK(bundle.size() == built_in.size());
      // Nothing that no launch can take is compiled.
      CHECK(bundle.size() <= built_in.size() + picked.size());
    }
  }
}

TEST_CASE("the buckets are those of the built-in choice") {
  const plan::Bundle bundle = plan::choose({.cols = 65536}, hopper);
  for (const plan::Specialization& s : bundle) {
    CHECK((s.most_rows <= plan::most_few_rows || s.most_rows == std::numeric_limits<std::int64_t>::max()));
  }
  const auto few = plan::chosen_for(bundle, plan::fewest_rows(plan::RowsBucket::few));
  const auto many = plan::chosen_for(bundle, plan::fewest_rows(plan::RowsBucket::many));
  CHECK(plan::name_expression(few) != plan::name_expression(many));
  CHECK(plan::name_expression(few) == plan::name_expression(plan::unaligned(bundle.front())));
  CHECK(plan::name_expression(many) == plan::name_expression(plan::unaligned(bundle.back())));
}

TEST_CASE("a pick leaves more rows than it was found with the kernel that the built-in choice has for those") {
  const Problem problem{.cols = 4096, .in = DType::bf16, .out = DType::bf16, .layout = Layout::strided};
  const plan::Bundle built_in = plan::choose(problem, hopper);
  REQUIRE(built_in.front().family == plan::Family::strided_staged);
  const plan::Specialization few_tiles = plan::chosen_for(built_in, 100);
  CHECK(few_tiles.family == plan::Family::strided_registers);
  CHECK(plan::chosen_for(built_in, 4096).family == plan::Family::strided_staged);

  const auto family_for = [&](const plan::Bundle& bundle, std::int64_t count) {
    alignas(64) static char memory[64];
    const Rows rows{.out = memory,
                    .in = memory,
                    .count = count,
                    .out_stride = 4096 * count,
                    .in_stride = 4096 * count,
                    .inner = count};
    return bundle[plan::select(bundle, rows)].family;
  };
  // Found with few tiles, of which it is the built-in choice, or not.
  CHECK(plan::with_picks(built_in, {.many = few_tiles, .many_rows = 100}).size() == built_in.size());
  const plan::Specialization other = plan::generic(problem);
  const plan::Bundle of_few = plan::with_picks(built_in, {.many = other, .many_rows = 104});
  CHECK(family_for(of_few, 104) == plan::Family::strided);
  CHECK(family_for(of_few, 4096) == plan::Family::strided_staged);
  // Found with as many as that.
  const plan::Bundle of_many = plan::with_picks(built_in, {.many = few_tiles, .many_rows = 4096});
  CHECK(family_for(of_many, 4096) == plan::Family::strided_registers);
}
