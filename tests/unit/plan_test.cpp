// Promise: the plan is legal, depends on problem and architecture alone, and turns rows into a
// launch that covers them exactly.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/launch.hpp"
#include "plan/tuned.hpp"
#include "plan/variants.hpp"

using namespace jitsoftmax;

namespace {

constexpr Arch hopper{9, 0, 0};
constexpr std::pair<DType, DType> type_pairs[] = {
    {DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::f32, DType::f32},  {DType::f64, DType::f64},
    {DType::f16, DType::f32}, {DType::bf16, DType::f32},  {DType::f32, DType::bf16}, {DType::f32, DType::f16}};

template <class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Rows over real memory, so that pointers can be compared.
struct Memory {
  std::vector<double> in = std::vector<double>(64);
  std::vector<double> out = std::vector<double>(64);
  [[nodiscard]] Rows rows(std::int64_t count) { return {.out = out.data(), .in = in.data(), .count = count}; }
};

// Whether both give the elements of a row to the same threads, in the same order.
bool same_mapping(const plan::Specialization& a, const plan::Specialization& b) {
  kernels::Config expected = b.config;
  expected.aligned = a.config.aligned;
  expected.resident = a.config.resident;  // a bound for the compiler
  plan::Specialization other = b;
  other.config = expected;
  return !a.config.peeled && plan::name_expression(a) == plan::name_expression(other);
}

// Why a kernel by hand for 4096 columns is refused; "" if it is not.
std::string why_illegal(plan::Family family, const kernels::Config& config, DType type = DType::f32) {
  return plan::illegal(plan::specialization({.cols = 4096, .in = type, .out = type}, family, config));
}

}  // namespace

TEST_CASE("a specialization has one readable spelling") {
  const plan::Specialization s{.family = plan::Family::registers,
                               .config = {.threads = 512, .vector = 4, .elements = 8, .aligned = true, .shared = 128},
                               .cols = 4096,
                               .in = DType::f32,
                               .out = DType::bf16,
                               .op = Op::log_softmax};
  CHECK(plan::name_expression(s) ==
        "registers<Config{.threads=512,.rows=1,.vector=4,.elements=8,.aligned=true,.shared=128},Static<4096>,float,"
        "bf16,LogSoftmax>");
  plan::Specialization runtime = s;
  runtime.cols = 0;
  CHECK(contains(plan::name_expression(runtime), ",Runtime,"));
}

TEST_CASE("every choice is legal and its last specialization takes any rows") {
  std::vector<std::int64_t> lengths;
  for (std::int64_t n = 1; n <= 2100; ++n) lengths.push_back(n);
  for (std::int64_t n = 4096; n <= (std::int64_t{1} << 33); n *= 2)
    lengths.insert(lengths.end(), {n - 1, n, n + 1, n + n / 2});
  for (const auto& [in, out] : type_pairs) {
    for (const Layout layout : {Layout::contiguous, Layout::strided}) {
      for (const std::int64_t cols : lengths) {
        const Problem problem{.cols = cols, .in = in, .out = out, .layout = layout};
        CAPTURE(plan::describe(problem));
        const auto odd_address = static_cast<std::uintptr_t>(0x10000 + size_of(in) * size_of(out));
        const Rows worst{.out = reinterpret_cast<void*>(odd_address),
                         .in = reinterpret_cast<void*>(odd_address),
                         .count = 3,
                         .out_stride = cols + 1,
                         .in_stride = cols + 1};
        for (const bool deterministic : {false, true}) {
          CAPTURE(deterministic);
          const plan::Bundle bundle = plan::choose(problem, hopper, {}, deterministic);
          REQUIRE_FALSE(bundle.empty());
          for (const plan::Specialization& s : bundle) {
            CAPTURE(plan::name_expression(s));
            REQUIRE(plan::illegal(s) == "");
            REQUIRE((s.cols == 0 || s.cols == cols));
            // The bits of a row must not depend on which of the bundle runs.
            if (deterministic) REQUIRE(same_mapping(s, bundle.front()));
          }
          REQUIRE(plan::accepts(bundle.back(), worst));
          REQUIRE(plan::accepts(bundle[plan::select(bundle, worst)], worst));
        }
      }
    }
  }
}

TEST_CASE("a bundle peels only where it need not be deterministic") {
  const Problem whole{.cols = 4096};
  const plan::Bundle peeled = plan::choose(whole, hopper);
  REQUIRE(peeled.size() == 2);
  CHECK(peeled[0].config.aligned);
  CHECK_FALSE(peeled[0].config.peeled);
  CHECK(peeled[1].config.peeled);
  CHECK_FALSE(peeled[1].config.aligned);
  // Such rows are aligned by chance only.
  const plan::Bundle odd = plan::choose({.cols = 4097}, hopper);
  REQUIRE(odd.size() == 1);
  CHECK(odd[0].config.peeled);
  CHECK(odd[0].config.vector == 4);
  for (const std::int64_t cols : {4096, 4097, 4098}) {
    for (const plan::Specialization& s : plan::choose({.cols = cols}, hopper, {}, true)) {
      CHECK_FALSE(s.config.peeled);
      CHECK(cols % s.config.vector == 0);
    }
  }
  // What an element is aligned to needs no peeling.
  CHECK(plan::choose(whole, hopper, {.name = "v1"}).size() == 1);
  CHECK(plan::choose(whole, hopper, {.name = "v1"})[0].config.aligned);
}

TEST_CASE("clusters, packed elements and staged rows are legal where the kernels can do them") {
  using plan::Family;
  const kernels::Config clustered{.threads = 128, .cluster = 4, .vector = 4, .elements = 8};
  CHECK(why_illegal(Family::registers, clustered) == "");
  const auto with = [](kernels::Config config, auto change) {
    change(config);
    return config;
  };
  using Config = kernels::Config;
  CHECK(contains(why_illegal(Family::looped, clustered), "clusters are of"));
  CHECK(contains(why_illegal(Family::safe, clustered), "clusters are of"));
  CHECK(contains(why_illegal(Family::registers, with(clustered, [](Config& c) { c.cluster = 3; })), "power of two"));
  CHECK(contains(why_illegal(Family::registers, with(clustered, [](Config& c) { c.cluster = 32; })), "power of two"));
  CHECK(contains(why_illegal(Family::registers, with(clustered, [](Config& c) { c.cluster = 0; })), "power of two"));
  CHECK(contains(why_illegal(Family::registers, with(clustered, [](Config& c) { c.rows = 2; })), "one row"));
  CHECK(contains(why_illegal(Family::registers, with(clustered, [](Config& c) { c.cluster = 2; })), "does not fit"));
  CHECK(contains(why_illegal(Family::registers, with(clustered, [](Config& c) { c.pieces = 2; })), "pieces"));
  const auto of_low_latency = [&](auto change) {
    Config config = clustered;
    config.low_latency = true;
    config.cluster = 16;
    change(config);
    return why_illegal(Family::registers, config);
  };
  CHECK(of_low_latency([](Config&) {}) == "");
  CHECK(of_low_latency([](Config& c) { c.threads = 256; }) == "");
  CHECK(contains(of_low_latency([](Config& c) { c.threads = 288; }), "up to 256 threads"));
  CHECK(contains(
      of_low_latency([](Config& c) { c = {.threads = 1024, .vector = 4, .elements = 8, .low_latency = true}; }),
      "clusters"));

  CHECK(why_illegal(Family::registers, with(clustered, [](Config& c) { c.staggered = true; })) == "");
  CHECK(contains(why_illegal(Family::registers, {.threads = 1024, .vector = 4, .elements = 8, .staggered = true}),
                 "staggered are clusters"));

  CHECK(why_illegal(Family::registers, {.threads = 128, .vector = 8, .elements = 32, .packed = true}, DType::bf16) ==
        "");
  CHECK(contains(why_illegal(Family::looped, {.threads = 256, .vector = 4, .elements = 4, .packed = true}), "packed"));

  const kernels::Config staged{.threads = 128, .vector = 4, .elements = 32, .pieces = 4};
  CHECK(why_illegal(Family::staged, staged) == "");
  CHECK(contains(why_illegal(Family::staged, with(staged, [](Config& c) { c.pieces = 3; })), "multiple of the pieces"));
  CHECK(contains(why_illegal(Family::staged, with(staged, [](Config& c) { c.pieces = 0; })), "multiple of the pieces"));
  CHECK(contains(why_illegal(Family::staged, with(staged, [](Config& c) { c.vector = 2; })), "16 bytes of input"));
  CHECK(contains(why_illegal(Family::staged, with(staged, [](Config& c) { c.elements = 16; })), "does not fit"));
  CHECK(contains(why_illegal(Family::staged, with(staged, [](Config& c) { c.packed = true; })), "packed"));
  CHECK(contains(why_illegal(Family::staged, with(staged, [](Config& c) { c.threads = 1024, c.elements = 64; })),
                 "shared memory"));
  CHECK(contains(plan::illegal(plan::specialization({.cols = 4096, .in = DType::f16, .out = DType::f32}, Family::staged,
                                                    {.threads = 128, .vector = 4, .elements = 32, .pieces = 4})),
                 "16 bytes of input"));
}

TEST_CASE("candidates are legal, and only newer devices have clusters and staged rows") {
  for (const auto& [in, out] : type_pairs) {
    for (const std::int64_t cols : {1, 100, 4096, 4097, 32768, 131071}) {
      const Problem problem{.cols = cols, .in = in, .out = out};
      for (const plan::Specialization& s : plan::candidates(problem, hopper)) {
        CAPTURE(plan::name_expression(s));
        REQUIRE(plan::illegal(s) == "");
        for (const bool deterministic : {false, true}) {
          for (const plan::Specialization& member : plan::bundle_of(s, deterministic)) {
            REQUIRE(plan::illegal(member) == "");
            if (deterministic) REQUIRE(same_mapping(member, s));
          }
        }
        // People can ask for each.
        const plan::Specialization asked = plan::choose(problem, hopper, plan::variant_of(s)).front();
        REQUIRE(plan::name_expression(asked) == plan::name_expression(plan::bundle_of(s, false).front()));
      }
      for (const plan::Specialization& s : plan::candidates(problem, {8, 0, 0})) {
        REQUIRE(s.config.cluster == 1);
        REQUIRE(s.family != plan::Family::staged);
      }
    }
  }
}

TEST_CASE("aligned rows get the aligned kernel, a shifted pointer or an odd stride does not") {
  const plan::Bundle bundle = plan::choose({.cols = 4096}, hopper);
  alignas(16) char memory[32] = {};
  Rows rows{.out = memory, .in = memory, .count = 8, .out_stride = 4096, .in_stride = 4096};
  CHECK(bundle[plan::select(bundle, rows)].config.aligned);
  rows.in = memory + 4;
  CHECK_FALSE(bundle[plan::select(bundle, rows)].config.aligned);
  rows.in = memory;
  rows.out = memory + 8;
  CHECK_FALSE(bundle[plan::select(bundle, rows)].config.aligned);
  rows.out = memory;
  rows.out_stride = 4097;
  CHECK_FALSE(bundle[plan::select(bundle, rows)].config.aligned);
}

TEST_CASE("strided rows that move wide have a kernel beside them for rows whose packets are not aligned") {
  const Problem problem{.cols = 1024, .layout = Layout::strided};
  const plan::Bundle bundle = plan::choose(problem, hopper, {.vector = 2});
  REQUIRE(bundle.size() == 2);
  REQUIRE(bundle.front().config.vector == 2);
  REQUIRE(bundle.back().config.vector == 1);
  alignas(16) char memory[32] = {};
  const Rows packed{
      .out = memory, .in = memory, .count = 12, .out_stride = 1024 * 6, .in_stride = 1024 * 6, .inner = 6};
  const auto width = [&](const Rows& rows) { return bundle[plan::select(bundle, rows)].config.vector; };
  CHECK(width(packed) == 2);
  Rows rows = packed;
  rows.inner = 3;
  CHECK(width(rows) == 1);
  rows = packed;
  rows.in = memory + 4;
  CHECK(width(rows) == 1);
  rows = packed;
  rows.out_stride += 1;
  CHECK(width(rows) == 1);
  // A tile has 32 rows times the width of an access.
  CHECK(plan::geometry(bundle.front(), {.count = 129}, 1).grid ==
        3 * static_cast<unsigned>(bundle.front().config.cluster));
}

TEST_CASE("strided elements of 16 bits move in pairs, and one by one where pairs are not aligned") {
  const Problem problem{.cols = 4096, .in = DType::bf16, .out = DType::bf16, .layout = Layout::strided};
  plan::Bundle bundle = plan::choose(problem, hopper);
  std::erase_if(bundle, [](const plan::Specialization& s) { return s.family == plan::Family::strided_staged; });
  REQUIRE(bundle.size() == 2);
  CHECK(bundle.front().config.vector == 2);
  CHECK(bundle.front().config.packed);
  // Not the two reads of rows of any length: registers hold as many columns of half as many rows.
  CHECK(bundle.back().family == plan::Family::strided_registers);
  CHECK(bundle.back().config.vector == 1);
  CHECK_FALSE(bundle.back().config.packed);
}

TEST_CASE("strided tiles of 16 bits are staged where they fill the device, if their copies are aligned") {
  const Problem problem{.cols = 4096, .in = DType::bf16, .out = DType::bf16, .layout = Layout::strided};
  const plan::Bundle bundle = plan::choose(problem, hopper);
  alignas(16) char memory[32] = {};
  const auto family = [&](std::int64_t rows, int bytes, std::int64_t inner) {
    const Rows packed{.out = memory,
                      .in = memory + bytes,
                      .count = rows,
                      .out_stride = 4096 * inner,
                      .in_stride = 4096 * inner,
                      .inner = inner};
    return bundle[plan::select(bundle, rows == 0 ? Rows{} : packed)].family;
  };
  CHECK(family(4096, 0, 4096) == plan::Family::strided_staged);
  CHECK(family(4096, 0, 8) == plan::Family::strided_staged);
  CHECK(family(1024, 0, 1024) == plan::Family::strided_registers);  // less than a multiprocessor's share for each
  CHECK(family(4096, 4, 4096) == plan::Family::strided_registers);  // pairs are aligned, copies are not
  CHECK(family(4100, 0, 4100) == plan::Family::strided_registers);
  CHECK(bundle.back().config.vector == 1);

  const auto is_staged = [](const plan::Specialization& s) { return s.family == plan::Family::strided_staged; };
  const auto any_staged = [&](const plan::Bundle& all) { return std::any_of(all.begin(), all.end(), is_staged); };
  for (const std::int64_t cols : {1000, 2048, 4000}) {
    for (const DType type : {DType::f16, DType::bf16}) {
      const Problem chosen{.cols = cols, .in = type, .out = type, .layout = Layout::strided};
      CHECK(any_staged(plan::choose(chosen, hopper)));
      CHECK_FALSE(any_staged(plan::choose(chosen, hopper, {}, true)));
      CHECK_FALSE(any_staged(plan::choose(chosen, {8, 0, 0})));
      CHECK_FALSE(any_staged(plan::choose(chosen, {12, 0, 0})));
      CHECK(any_staged(plan::candidates(chosen, hopper)));
    }
    CHECK_FALSE(any_staged(plan::choose({.cols = cols, .layout = Layout::strided}, hopper)));
  }
  for (const std::int64_t cols : {256, 1200, 2500, 4097}) {
    CAPTURE(cols);
    CHECK_FALSE(any_staged(
        plan::choose({.cols = cols, .in = DType::f16, .out = DType::f16, .layout = Layout::strided}, hopper)));
  }
}

TEST_CASE("a staged tile that is picked or made by hand has a kernel beside it for rows that are not aligned") {
  const Problem problem{.cols = 4096, .in = DType::f16, .out = DType::f16, .layout = Layout::strided};
  const Variant by_hand{.family = "strided_staged", .threads = 16, .cluster = 2, .pieces = 12};
  const plan::Bundle bundle = plan::choose(problem, hopper, by_hand);
  CHECK(bundle.front().family == plan::Family::strided_staged);
  CHECK(bundle.front().config.elements == 256);
  CHECK(bundle.back().family == plan::Family::strided_registers);
  CHECK(bundle.back().config.vector == 1);

  const auto refused = [&](Variant variant) {
    variant.family = "strided_staged";
    return error_of([&] { (void)plan::choose(problem, hopper, variant); });
  };
  CHECK(contains(refused({.threads = 16, .cluster = 2, .vector = 1, .pieces = 1}), "several rows a thread"));
  CHECK(contains(refused({.threads = 16, .cluster = 2, .pieces = 0}), "at least 8 columns for each piece"));
  CHECK(contains(refused({.threads = 16, .cluster = 2, .pieces = 16}), "and 2 in registers"));
  CHECK(contains(refused({.threads = 16, .cluster = 1, .pieces = 12}), "too many elements a thread"));
  CHECK(contains(refused({.threads = 32, .cluster = 2, .elements = 256, .pieces = 12}), "does not fit there"));
  CHECK(contains(refused({.threads = 16, .cluster = 2, .pieces = 12, .packed = true}), "hold packed elements"));
}

TEST_CASE(
    "few rows that no cluster holds are split over the device, but not where bits are to be the same everywhere") {
  const Problem problem{.cols = 1 << 20};
  const plan::Bundle bundle = plan::choose(problem, hopper);
  CHECK(bundle.front().family == plan::Family::split);
  CHECK(bundle.front().most_rows == 64);
  CHECK(bundle.back().family == plan::Family::looped);
  CHECK(plan::choose({.cols = 131072}, Arch{8, 0, 0}).front().family == plan::Family::split);
  for (const plan::Specialization& s : plan::choose(problem, hopper, {}, true)) CHECK(s.family != plan::Family::split);
}

TEST_CASE("few long rows take clusters of low latency, as large as the device has them and the row is worth") {
  const auto few = [](std::int64_t cols, const Arch& arch, DType type = DType::f32) {
    const plan::Bundle bundle = plan::choose({.cols = cols, .in = type, .out = type}, arch);
    CHECK(bundle.front().most_rows <= 64);
    for (const plan::Specialization& s : bundle) {
      CHECK(s.config.low_latency == (s.most_rows <= 64 && type != DType::f64));
    }
    return bundle.front().config.cluster;
  };
  CHECK(few(8192, hopper) == 8);
  CHECK(few(16384, hopper, DType::bf16) == 8);
  CHECK(few(16385, hopper) == 16);
  CHECK(few(32000, hopper, DType::bf16) == 16);
  CHECK(few(131072, hopper) == 16);
  CHECK(few(32000, hopper, DType::f64) == 16);
  CHECK(few(32000, Arch{12, 0, 0}) == 8);
  // Of 8 blocks a thread holds no more of a longer row, as long as there are threads.
  CHECK(plan::choose({.cols = 65536}, Arch{12, 0, 0}).front().config.elements == 16);
  // Others are as they were: many rows, and those that have the same bits everywhere.
  for (const plan::Specialization& s : plan::choose({.cols = 32000}, hopper, {}, true)) CHECK(!s.config.low_latency);
  const auto all = plan::candidates({.cols = 32000}, hopper);
  CHECK(std::any_of(all.begin(), all.end(), [](const auto& s) { return s.config.low_latency; }));
  CHECK(
      std::any_of(all.begin(), all.end(), [](const auto& s) { return s.config.cluster > 8 && !s.config.low_latency; }));
}

TEST_CASE("rows of large clusters begin one after another, but the fewest, each number of rows with one kernel") {
  const auto staggered = [](const plan::Bundle& bundle, std::int64_t rows) {
    int serve = 0;
    bool result = false;
    for (const plan::Specialization& s : bundle) {
      if (!s.config.aligned || rows < s.least_rows || rows > s.most_rows) continue;
      if (serve++ == 0) result = s.config.staggered;
    }
    CHECK(serve >= 1);
    return result;
  };
  for (const DType type : {DType::f32, DType::bf16, DType::f64}) {
    for (const std::int64_t cols : {32000, 65536, 128256, 151936, 262144}) {
      if (type == DType::f64 && cols > 128256) continue;  // beyond what a cluster holds
      CAPTURE(static_cast<int>(type));
      CAPTURE(cols);
      const plan::Bundle bundle = plan::choose({.cols = cols, .in = type, .out = type}, hopper);
      const std::int64_t megabytes3 = (3 << 20) / (cols * size_of(type)) + 1;
      CHECK_FALSE(staggered(bundle, 1));
      CHECK_FALSE(staggered(bundle, 15));
      CHECK(staggered(bundle, std::max<std::int64_t>(57, megabytes3)));
      CHECK(staggered(bundle, 100000));
      // No two members are the same kernel.
      std::set<std::string> names;
      for (const plan::Specialization& s : bundle) CHECK(names.insert(plan::name_expression(s)).second);
      for (const plan::Specialization& s : plan::choose({.cols = cols, .in = type, .out = type}, Arch{12, 0, 0})) {
        CHECK_FALSE(s.config.staggered);  // where nobody has measured it
      }
    }
  }
  const plan::Bundle f32 = plan::choose({.cols = 131072}, hopper);
  CHECK(staggered(f32, 16));
  CHECK(f32.front().most_rows == 15);
  // For a few rows between the fewest and many there is no kernel of its own, nor is there two times the same.
  CHECK(plan::choose({.cols = 32000}, hopper).size() == 6);
  CHECK(plan::choose({.cols = 32000, .in = DType::bf16, .out = DType::bf16}, hopper).size() == 4);
  CHECK(plan::choose({.cols = 151936}, hopper).size() == 4);
  for (const plan::Specialization& s : plan::choose({.cols = 8192}, hopper)) CHECK_FALSE(s.config.staggered);
  CHECK(plan::choose({.cols = 4096, .layout = Layout::strided}, hopper).front().config.staggered);
  CHECK_FALSE(plan::choose({.cols = 1024, .layout = Layout::strided}, hopper).front().config.staggered);
}

TEST_CASE("a staggered launch is told of the tiles that the device holds at once, if it has enough of them") {
  plan::Specialization s = plan::choose({.cols = 131072}, hopper).back();
  REQUIRE(s.config.staggered);
  CHECK(plan::geometry(s, {.count = 15}, 528, 28).staggered == 0);
  CHECK(plan::geometry(s, {.count = 16}, 528, 28).staggered == 28);
  CHECK(plan::geometry(s, {.count = 512}, 528, 28).staggered == 28);
  CHECK(plan::geometry(s, {.count = 512}, 528).staggered == 0);
  s.config.staggered = false;
  CHECK(plan::geometry(s, {.count = 512}, 528, 28).staggered == 0);
}

TEST_CASE("a gang has as many blocks as hold a row, or as the device has room for; whole gangs are launched") {
  const plan::Specialization s = plan::choose({.cols = 1 << 20}, hopper).front();
  const int blocks = (1 << 20) / (s.config.threads * s.config.elements);
  for (const int room : {blocks, 2 * blocks, 2 * blocks + 1, 5 * blocks - 1}) {
    CAPTURE(room);
    for (const std::int64_t rows : {1, 2, 3, 64}) {
      const plan::Geometry grid = plan::geometry(s, {.count = rows}, room);
      CHECK(grid.gang == static_cast<unsigned>(blocks));
      CHECK(grid.grid ==
            grid.gang * std::min<unsigned>(static_cast<unsigned>(rows), static_cast<unsigned>(room) / grid.gang));
      const auto gangs = static_cast<std::int64_t>(grid.grid / grid.gang);
      CHECK(plan::workspace_bytes(s, room) >= static_cast<std::size_t>(gangs * kernels::gang_words(blocks, 4) * 8));
    }
  }
  CHECK(plan::geometry(s, {.count = 3}, blocks - 1).gang == static_cast<unsigned>(blocks) - 1);
  CHECK(plan::geometry(s, {.count = 3}, 0).grid == 1);
  CHECK(plan::workspace_bytes(plan::choose({.cols = 4096}, hopper).front(), 264) == 0);
}

TEST_CASE("strided rows whose bits must not depend on their address do not move wide") {
  const Problem problem{.cols = 1024, .layout = Layout::strided};
  CHECK(contains(error_of([&] { (void)plan::choose(problem, hopper, {.vector = 2}, true); }), "pass vector 1"));
  CHECK(plan::choose(problem, hopper, {.vector = 1}, true).size() == 1);
}

TEST_CASE("strided rows are held in registers as far as the device has clusters for them") {
  const auto family = [](std::int64_t cols, const Arch& arch) {
    return plan::choose({.cols = cols, .layout = Layout::strided}, arch).front().family;
  };
  CHECK(family(4096, hopper) == plan::Family::strided_registers);
  CHECK(family(100000, hopper) == plan::Family::strided);
  CHECK(family(1024, {8, 0, 0}) == plan::Family::strided_registers);
  CHECK(family(4096, {8, 0, 0}) == plan::Family::strided);
}

TEST_CASE("the lesson's versions and hand-made points are reachable, impossible ones say why") {
  const Problem problem{.cols = 4096};
  const auto point = [&](const Variant& variant) { return plan::choose(problem, hopper, variant).back(); };
  CHECK(point({.name = "v0"}).config.threads == 1);
  CHECK_FALSE(point({.name = "v1"}).config.blocked);
  CHECK(point({.name = "v1"}).config.vector == 1);
  CHECK(point({.name = "v2"}).config.vector == 4);
  CHECK(point({.name = "v3"}).family == plan::Family::registers);
  CHECK(point({.name = "v4"}).config.persistent);
  CHECK(point({.name = "safe3"}).family == plan::Family::safe);
  CHECK(point({.name = "generic"}).cols == 0);
  const plan::Specialization custom = point({.family = "registers", .threads = 256, .vector = 2, .elements = 16});
  CHECK(custom.config.threads == 256);
  CHECK(custom.config.vector == 2);
  CHECK(custom.config.elements == 16);

  CHECK(contains(error_of([&] { point({.name = "v9"}); }), "known: generic safe3 v0 v1 v2 v3 v4"));
  CHECK(contains(error_of([&] { point({.family = "butterfly"}); }), "is no family"));
  CHECK(contains(error_of([&] { point({.family = "registers", .threads = 32, .elements = 4}); }), "does not fit"));
  CHECK(contains(error_of([&] { point({.threads = 144}); }), "multiple of 32"));
  CHECK(contains(error_of([&] { point({.vector = 8}); }), "16 bytes"));
  // Numbers whose products overflow.
  constexpr int huge = 1 << 30;
  CHECK(contains(error_of([&] { point({.threads = huge}); }), "1024 threads"));
  CHECK(contains(error_of([&] { point({.rows = huge}); }), "1024 threads"));
  CHECK(contains(error_of([&] { point({.vector = huge}); }), "multiple of the vector width"));
  CHECK(contains(error_of([&] { point({.vector = huge, .elements = huge}); }), "too many elements"));
  const Problem strided{.cols = 4096, .layout = Layout::strided};
  for (const Variant& variant : {Variant{.threads = huge}, Variant{.rows = huge}, Variant{.pieces = huge}}) {
    CHECK_THROWS_AS((void)plan::choose(strided, hopper, variant), Error);
  }
  CHECK(contains(error_of([&] { point({.family = "strided"}); }), "strided"));
  CHECK(contains(error_of([] { (void)plan::choose({.cols = 1 << 20}, hopper, {.name = "v3"}); }), "does not fit"));
  CHECK(contains(error_of([] { (void)plan::choose({.cols = 64, .layout = Layout::strided}, hopper, {.name = "v1"}); }),
                 "neighbours"));
}

TEST_CASE("counted is compiled for any number of columns, and neither chosen nor tuned nor recorded") {
  const plan::Specialization s = plan::choose({.cols = 4096}, hopper, {.family = "counted", .threads = 256}).front();
  CHECK(plan::name_expression(s) ==
        "counted<Config{.threads=256,.rows=1,.vector=4,.elements=16,.aligned=true,.shared=64},Runtime,float,float,"
        "Softmax>");
  CHECK(contains(error_of([] {
                   (void)plan::choose({.cols = 4097}, hopper, {.family = "counted", .threads = 256, .elements = 12});
                 }),
                 "does not fit"));
  CHECK_FALSE(plan::specialization_named({.cols = 4096}, plan::name_expression(plan::unaligned(s))));
  for (const std::int64_t cols : {1, 333, 4096, 50257, 1 << 20}) {
    for (const Arch& arch : {hopper, Arch{8, 0, 0}}) {
      for (const plan::Specialization& candidate : plan::candidates({.cols = cols}, arch)) {
        CHECK(candidate.family != plan::Family::counted);
      }
      for (const plan::Specialization& member : plan::choose({.cols = cols}, arch)) {
        CHECK(member.family != plan::Family::counted);
      }
    }
  }
}

TEST_CASE("launches cover any number of rows once, with legal grids and no block to spare") {
  std::mt19937_64 random(20260101);
  const Problem contiguous{.cols = 4};
  const Problem strided{.cols = 4, .layout = Layout::strided};
  const plan::Specialization packed = plan::choose(contiguous, hopper).front();
  const plan::Specialization clustered = plan::specialization(
      contiguous, plan::Family::registers, {.threads = 64, .cluster = 8, .vector = 4, .elements = 8});
  const plan::Specialization tiles = plan::choose(strided, hopper).front();
  std::vector<std::int64_t> counts{1, 2, 65535, 65536, 65537, 131071, 2'200'000'000, std::int64_t{1} << 40};
  for (int i = 0; i < 1000; ++i) counts.push_back(1 + static_cast<std::int64_t>(random() >> (22 + random() % 40)));
  for (const plan::Specialization* s : {&packed, &clustered, &tiles}) {
    const Problem& problem = s == &tiles ? strided : contiguous;
    for (const std::int64_t count : counts) {
      constexpr std::intptr_t base = 1 << 20;  // an address for arithmetic only
      Rows rows{.out = reinterpret_cast<void*>(base),
                .in = reinterpret_cast<const void*>(base),
                .out_stride = 6,
                .in_stride = 5};
      if (s == &tiles) {
        rows.inner = 1 + static_cast<std::int64_t>(random() >> (24 + random() % 40));
        rows.in_stride = 4 * rows.inner + 1;
        rows.out_stride = 4 * rows.inner + 2;
      }
      if (count > (std::int64_t{1} << 42) / rows.inner) continue;
      rows.count = count * rows.inner;
      CAPTURE(rows.count);
      CAPTURE(rows.inner);
      // Where row r is, in elements from the first: of the input.
      const auto place = [&](std::int64_t r, std::int64_t stride) { return r / rows.inner * stride + r % rows.inner; };
      std::int64_t first = 0;
      int launches = 0;
      for (Rows rest = rows; rest.count != 0; ++launches) {
        REQUIRE(reinterpret_cast<std::intptr_t>(rest.in) - base == 4 * place(first, rows.in_stride));
        REQUIRE(reinterpret_cast<std::intptr_t>(rest.out) - base == 4 * place(first, rows.out_stride));
        const Rows part = plan::take_rows_of_launch(*s, problem, rest);
        // What a launch takes for its last row is that row.
        const std::int64_t last = first + part.count - 1;
        REQUIRE(place(last, rows.in_stride) == place(first, rows.in_stride) + place(part.count - 1, rows.in_stride));
        const plan::Geometry grid = plan::geometry(*s, part, 264);
        REQUIRE(grid.grid >= 1);
        REQUIRE(grid.grid <= 2147483647U);
        REQUIRE(grid.grid % grid.cluster == 0);
        REQUIRE(grid.block == static_cast<unsigned>(s->config.threads * s->config.rows));
        const std::int64_t tiles_of_grid = grid.grid / grid.cluster;
        REQUIRE(tiles_of_grid * plan::rows_of_tile(*s) >= part.count);
        REQUIRE((tiles_of_grid - 1) * plan::rows_of_tile(*s) < part.count);
        first += part.count;
      }
      REQUIRE(first == rows.count);
      if (rows.count < std::int64_t{1} << 28) REQUIRE(launches == 1);
    }
  }
  CHECK(plan::geometry(packed, {.count = 7}, 264).cluster == 1);
  CHECK(plan::geometry(clustered, {.count = 7}, 264).cluster == 8);
  const plan::Specialization v4 = plan::choose({.cols = 4096}, hopper, {.name = "v4"}).front();
  CHECK(plan::geometry(v4, {.count = 1 << 20}, 264).grid == 264);
  CHECK(plan::geometry(v4, {.count = 7}, 264).grid == 7);
  for (const int resident : {0, 55, 56, 57, 111, 112}) {
    CHECK(plan::geometry(clustered, {.count = 7}, resident).at_once == static_cast<unsigned>(resident / (7 * 8)));
  }
}

TEST_CASE("sizes, strides and pointers that cannot be served are argument errors that say what is wrong") {
  Memory memory;
  const Problem problem{.cols = 5};
  const auto why = [&](const Problem& p, const Rows& rows) {
    return error_of([&] {
      plan::check(p);
      (void)plan::check(p, rows);
    });
  };
  const Rows good = memory.rows(3);
  CHECK(why(problem, good) == "");
  CHECK(contains(why({.cols = -1}, good), "negative"));
  CHECK(contains(why(problem, memory.rows(-1)), "negative"));
  CHECK(contains(why({.cols = 5, .in = DType::f64, .out = DType::f32}, good), "types"));
  CHECK(contains(why({.cols = 5, .in = DType::f16, .out = DType::bf16}, good), "types"));
  CHECK(contains(why({.cols = 5, .in = static_cast<DType>(77)}, good), "enumeration"));

  Rows rows = good;
  rows.in_stride = 4;
  CHECK(contains(why(problem, rows), "in_stride is 4"));
  rows = good;
  rows.out_stride = -8;
  CHECK(contains(why(problem, rows), "negative"));
  rows = good;
  rows.inner = 3;
  CHECK(contains(why(problem, rows), "strided"));
  CHECK(why({.cols = 5, .layout = Layout::strided}, rows) == "");
  rows.count = 4;
  CHECK(contains(why({.cols = 5, .layout = Layout::strided}, rows), "multiple"));
  rows = good;
  rows.in = nullptr;
  CHECK(contains(why(problem, rows), "in is null"));
  rows = good;
  rows.out = reinterpret_cast<char*>(memory.out.data()) + 2;
  CHECK(contains(why(problem, rows), "not aligned"));
  rows = good;
  rows.count = std::numeric_limits<std::int64_t>::max() / 2;
  CHECK(contains(why(problem, rows), "overflow"));
}

TEST_CASE("no rows and no columns are a success with null pointers") {
  CHECK(plan::check(Problem{.cols = 5}, Rows{}).count == 0);
  CHECK(plan::check(Problem{.cols = 0}, Rows{.count = 7}).count == 7);
}

TEST_CASE("in place and separate buffers are served, partial overlap is not") {
  Memory memory;
  const Problem problem{.cols = 5};
  float* const base = reinterpret_cast<float*>(memory.in.data());
  const auto overlap_error = [&](const Problem& p, const Rows& rows) {
    return contains(error_of([&] { (void)plan::check(p, rows); }), "overlap");
  };
  CHECK_FALSE(overlap_error(problem, {.out = base, .in = base, .count = 4}));
  CHECK_FALSE(overlap_error(problem, {.out = base + 20, .in = base, .count = 4}));
  CHECK_FALSE(overlap_error(problem, {.out = base, .in = base + 20, .count = 4}));
  CHECK(overlap_error(problem, {.out = base + 19, .in = base, .count = 4}));
  CHECK(overlap_error(problem, {.out = base, .in = base + 19, .count = 4}));
  CHECK(overlap_error(problem, {.out = base + 1, .in = base, .count = 1}));
  CHECK(overlap_error(problem, {.out = base, .in = base, .count = 4, .out_stride = 6}));
  CHECK_FALSE(overlap_error(problem, {.out = base, .in = base, .count = 1, .out_stride = 6}));
  // Two halves of one matrix, side by side.
  CHECK_FALSE(overlap_error(problem, {.out = base + 5, .in = base, .count = 4, .out_stride = 10, .in_stride = 10}));
  CHECK_FALSE(overlap_error(problem, {.out = base, .in = base + 5, .count = 4, .out_stride = 10, .in_stride = 10}));
  CHECK(overlap_error(problem, {.out = base + 4, .in = base, .count = 4, .out_stride = 10, .in_stride = 10}));
  CHECK(overlap_error(problem, {.out = base + 6, .in = base, .count = 4, .out_stride = 10, .in_stride = 10}));
  CHECK(overlap_error({.cols = 5, .in = DType::f32, .out = DType::f16}, {.out = base, .in = base, .count = 4}));
}

TEST_CASE("architectures are read as NVRTC writes them") {
  CHECK(Arch::parse("sm_90") == Arch{9, 0, 0});
  CHECK(Arch::parse("sm_90a") == Arch{9, 0, 'a'});
  CHECK(Arch::parse("sm_100f") == Arch{10, 0, 'f'});
  CHECK(Arch::parse("sm_121").name() == "sm_121");
  for (const char* wrong : {"", "90", "sm_", "sm_9", "sm_90b", "sm_9000", "compute_90", "sm_90aa", "sm_-90"}) {
    CAPTURE(wrong);
    CHECK(contains(error_of([&] { (void)Arch::parse(wrong); }), "architecture"));
  }
}
