// Promise: what tuning finds is kept and used, and nothing of it is done twice.
#include <chrono>
#include <filesystem>

#include "gpu/gpu_case.hpp"
#include "plan/tuned.hpp"
#include "temporary_directory.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

Options with_cache(const TemporaryDirectory& directory, std::vector<std::string>* warnings = nullptr) {
  Options options = gpu_options();
  options.cache_dir = directory.path();
  if (warnings != nullptr) {
    options.log = [warnings](LogLevel level, const std::string& message) {
      if (level >= LogLevel::warning) warnings->push_back(message);
    };
  }
  return options;
}

// The times of candidates are of aligned rows; so are these.
Rows aligned_rows(std::int64_t count) {
  Rows rows;
  rows.in = reinterpret_cast<const void*>(std::uintptr_t{1} << 32);
  rows.out = reinterpret_cast<void*>(std::uintptr_t{1} << 48);
  rows.count = count;
  return rows;
}

std::string chosen(const Kernel& kernel, const Problem& problem, std::int64_t rows) {
  const std::string name = kernel.specialization_for(aligned_rows(rows));
  // With its alignment left open, as a report spells it.
  for (const std::string flag : {",.aligned=true", ",.peeled=true"}) {
    const std::size_t at = name.find(flag);
    if (at == std::string::npos) continue;
    std::string open = name;
    open.erase(at, flag.size());
    CHECK(plan::specialization_named(problem, open).has_value());
    return open;
  }
  return name;
}

double ratio_to_winner(const TuneReport& report, const std::string& name) {
  const TuneItem* const item = report.find(name);
  return item == nullptr || item->median == 0 ? 1e9 : item->median / report.find(report.winner)->median;
}

}  // namespace

TEST_CASE("a second tuning times and compiles nothing, and a new engine uses the winner") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  const Problem problem{.cols = 1024};
  std::vector<std::string> warnings;
  Engine engine(with_cache(directory, &warnings));
  std::size_t calls = 0;
  TuneOptions options;
  options.progress = [&](const TuneProgress& progress) {
    ++calls;
    CHECK(progress.done == calls);
    CHECK(progress.done <= progress.total);
    return true;
  };
  const TuneReport first = engine.autotune(problem, 1024, options);
  MESSAGE(first.device << ": " << first.timed() << " timed in " << first.seconds << " s; " << first.winner << ", "
                       << first.find(first.winner)->median * 1e6 << " us; built in: " << first.built_in << ", "
                       << ratio_to_winner(first, first.built_in));
  CHECK(first.kept);
  CHECK_FALSE(first.few_rows);
  CHECK(first.rows == 1024);
  CHECK(first.timed() > 3);
  CHECK(calls >= first.timed());
  for (const TuneItem& item : first.items) {
    CAPTURE(item.specialization);
    CHECK_FALSE(item.failed);
    if (!item.rejected.empty()) continue;
    CHECK(item.median >= 0.99 * first.find(first.winner)->median * 0.95);
    CHECK(item.p10 <= item.median);
    CHECK(item.median <= item.p90);
  }
  CHECK(ratio_to_winner(first, first.built_in) >= 0.99);

  Engine again(with_cache(directory, &warnings));
  const TuneReport second = again.autotune(problem, 1024);
  CHECK(second.timed() == 0);
  CHECK(second.winner == first.winner);
  CHECK(second.items.size() == first.items.size());
  CHECK(again.stats().compiles == 0);
  // Another number of rows of the same kind has the same record.
  CHECK(again.autotune(problem, 5000).timed() == 0);

  Engine user(with_cache(directory, &warnings));
  const Kernel kernel = user.prepare(problem);
  CHECK(chosen(kernel, problem, 1024) == first.winner);
  CHECK(user.stats().compiles <= user.stats().kernels - user.stats().tuned_kernels);
  const bool picked = first.winner != first.built_in;
  CHECK((user.stats().tuned_kernels > 0) == picked);
  const std::vector<Origin> origins = kernel.origins();
  REQUIRE(origins.size() == kernel.specializations().size());
  CHECK((origins.back() == Origin::record) == picked);
  // Few rows have no record and keep the built-in choice.
  CHECK(origins.front() == Origin::built_in);
  for (const std::int64_t rows : {1, 64, 65, 3000}) {
    for (const std::int64_t offset : {0, 1}) {
      GpuCase test(problem, rows);
      test.in_offset = offset;
      test.fill_random(7);
      CHECK(test.check(kernel) == "");
    }
  }
  CHECK(warnings.empty());

  // Who does not want records does not get them.
  Options without = with_cache(directory);
  without.use_records = false;
  Engine plain(without);
  CHECK(chosen(plain.prepare(problem), problem, 1024) == first.built_in);
  CHECK(plain.stats().tuned_kernels == 0);
  without.use_records = true;
  without.deterministic = true;
  Engine deterministic(without);
  (void)deterministic.prepare(problem);
  CHECK(deterministic.stats().tuned_kernels == 0);
}

TEST_CASE("the caller's buffers are not touched, and its kernels go on working") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  const Problem problem{.cols = 2000, .in = DType::bf16, .out = DType::bf16};
  Engine engine(with_cache(directory));
  GpuCase test(problem, 50);
  test.fill_random(3);
  const Kernel before = engine.prepare(problem);
  const std::vector<double> results = test.run(before);

  std::vector<char> pattern(64 << 20);
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<char>(i * 31 >> 3);
  cuda::DeviceBuffer mine(pattern.size());
  mine.upload(pattern.data(), pattern.size());
  const std::size_t free = cuda::free_device_bytes();
  CHECK(engine.autotune(problem, 50).few_rows);
  std::vector<char> after(pattern.size());
  mine.download(after.data(), after.size());
  CHECK(after == pattern);
  CHECK(test.run(before) == results);
  // Its own memory is given back, but for loaded code.
  CHECK(cuda::free_device_bytes() + (std::size_t{256} << 20) > free);
}

TEST_CASE("few and many rows, long, odd, converting and strided shapes can be tuned and are right") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  struct Shape {
    Problem problem;
    std::int64_t rows;
  };
  for (const auto& [problem, rows] : std::vector<Shape>{
           {{.cols = 1}, 100000},
           {{.cols = 333}, 20000},
           {{.cols = 50257, .in = DType::bf16, .out = DType::bf16}, 300},
           {{.cols = 65536}, 4},
           {{.cols = 4096, .in = DType::f16, .out = DType::f32, .op = Op::log_softmax}, 1000},
           {{.cols = 512, .in = DType::f64, .out = DType::f64}, 4000},
           {{.cols = 512, .layout = Layout::strided}, 512},
       }) {
    CAPTURE(problem.cols);
    Engine engine(with_cache(directory));
    const TuneReport report = engine.autotune(problem, rows);
    REQUIRE_FALSE(report.winner.empty());
    for (const TuneItem& item : report.items) {
      CHECK_MESSAGE(!item.failed, item.specialization << ": " << item.rejected);
      CHECK_MESSAGE(item.rejected.find("is wrong") == std::string::npos, item.specialization);
    }
    const Kernel kernel = engine.prepare(problem);
    const std::int64_t some = std::min<std::int64_t>(rows, 512);
    GpuCase test(problem, some, problem.layout == Layout::strided ? some : 1);
    test.fill_random(11);
    CHECK(test.check(kernel) == "");
  }
}

TEST_CASE("two tunings pick the same kernel, or kernels within 2 % of each other") {
  const Gpu gpu;
  for (const Problem& problem : {Problem{.cols = 4096}, Problem{.cols = 1024, .in = DType::bf16, .out = DType::bf16}}) {
    const TemporaryDirectory first_place;
    const TemporaryDirectory second_place;
    TuneOptions options;
    options.effort = TuneEffort::full;
    const TuneReport first = Engine(with_cache(first_place)).autotune(problem, 16384, options);
    const TuneReport second = Engine(with_cache(second_place)).autotune(problem, 16384, options);
    MESSAGE(first.winner << " and " << second.winner);
    CHECK(ratio_to_winner(first, second.winner) < 1.02);
    CHECK(ratio_to_winner(second, first.winner) < 1.02);
  }
}

TEST_CASE("a full tuning repeats a quick one, and a quick one does not repeat a full one") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  const Problem problem{.cols = 256};
  Engine engine(with_cache(directory));
  CHECK(engine.autotune(problem, 4096).timed() > 0);
  TuneOptions full;
  full.effort = TuneEffort::full;
  CHECK(engine.autotune(problem, 4096, full).timed() > 0);
  CHECK(engine.autotune(problem, 4096, full).timed() == 0);
  CHECK(engine.autotune(problem, 4096).timed() == 0);
}

TEST_CASE("a tuning that is stopped keeps no record; a pick that cannot be had leaves the built-in choice") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  const Problem problem{.cols = 640};
  {
    Engine engine(with_cache(directory));
    TuneOptions options;
    options.progress = [](const TuneProgress& progress) { return progress.done < 3; };
    const TuneReport report = engine.autotune(problem, 4096, options);
    CHECK(report.stopped);
    CHECK_FALSE(std::filesystem::exists(directory / "records"));
    CHECK(engine.autotune(problem, 4096).kept);
  }
  // An image with the record but not its kernels, that must not compile.
  const TemporaryDirectory image;
  (void)Engine(with_cache(image)).warmup({problem}, {cuda::architecture(cuda::current_device())});
  std::filesystem::copy(directory / "records", image / "records", std::filesystem::copy_options::recursive);
  std::filesystem::permissions(image / "records", std::filesystem::perms::owner_all);
  for (const auto& file : std::filesystem::directory_iterator(image / "records")) {
    std::filesystem::permissions(file.path(), std::filesystem::perms(0600));
  }
  std::vector<std::string> warnings;
  Options options = with_cache(image, &warnings);
  options.on_miss = OnMiss::fail;
  Engine engine(options);
  const Kernel kernel = engine.prepare(problem);
  GpuCase test(problem, 100);
  test.fill_random(5);
  CHECK(test.check(kernel) == "");
}
