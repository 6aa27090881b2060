// Promise: the C API does on a GPU what the C++ one does: a launch on a stream, and a tuning that is told and kept.
#include <jitsoftmax/jitsoftmax.h>

#include <vector>

#include "cuda/stream.hpp"
#include "gpu/gpu_case.hpp"
#include "temporary_directory.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

constexpr jitsoftmax_problem problem{1024, JITSOFTMAX_F32, JITSOFTMAX_F32, JITSOFTMAX_SOFTMAX, JITSOFTMAX_CONTIGUOUS};

// An engine on the current context that keeps what it finds in the directory.
jitsoftmax_engine* make_engine(const TemporaryDirectory& directory) {
  jitsoftmax_options* options = nullptr;
  jitsoftmax_engine* engine = nullptr;
  REQUIRE(jitsoftmax_options_create(&options) == JITSOFTMAX_OK);
  CHECK(jitsoftmax_options_set(options, "device", "current") == JITSOFTMAX_OK);
  CHECK(jitsoftmax_options_set(options, "cache_dir", directory.path().c_str()) == JITSOFTMAX_OK);
  CHECK(jitsoftmax_create_with(options, &engine) == JITSOFTMAX_OK);
  jitsoftmax_options_destroy(options);
  REQUIRE(engine != nullptr);
  return engine;
}

struct Told {
  std::uint64_t progress = 0;
  std::uint64_t items = 0;
  std::uint64_t winners = 0;
  std::uint64_t built_in = 0;
  bool winner_first = false;
};

std::int32_t tell_progress(void* user, const char* what, std::uint64_t done, std::uint64_t total) {
  ++static_cast<Told*>(user)->progress;
  CHECK(what[0] != '\0');
  CHECK(done <= total);
  return 1;
}

void tell_result(void* user, const jitsoftmax_tune_item* item) {
  Told& told = *static_cast<Told*>(user);
  if (item->winner != 0) {
    ++told.winners;
    told.winner_first = told.items == 0;
    CHECK(item->median > 0);
    CHECK(item->p10 <= item->p90);
    CHECK(item->rejected[0] == '\0');
  }
  if (item->built_in != 0) ++told.built_in;
  ++told.items;
}

}  // namespace

TEST_CASE("a launch is ordered on the stream, and the counters count its kernels") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  jitsoftmax_engine* const engine = make_engine(directory);
  jitsoftmax_kernel* kernel = nullptr;
  REQUIRE(jitsoftmax_prepare(engine, &problem, &kernel) == JITSOFTMAX_OK);

  const cuda::OwnedStream stream = cuda::make_stream();
  std::vector<float> values(2 * 1024, 1.0F);
  cuda::DeviceBuffer buffer(values.size() * sizeof(float));
  buffer.upload(values.data(), values.size() * sizeof(float));
  cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");  // the stream waits for no other
  const jitsoftmax_rows rows{buffer.get(), buffer.get(), 2, 0, 0, 1, 1.0F};
  CHECK(jitsoftmax_launch(kernel, &rows, stream.get()) == JITSOFTMAX_OK);
  cuda::check(cuda::driver().CtxSynchronize(), "cuCtxSynchronize");
  buffer.download(values.data(), values.size() * sizeof(float));
  CHECK(values.front() == 1.0F / 1024);
  CHECK(values.back() == 1.0F / 1024);

  jitsoftmax_stats stats{};
  CHECK(jitsoftmax_get_stats(engine, &stats, sizeof stats) == JITSOFTMAX_OK);
  CHECK(stats.kernels > 0);
  CHECK(stats.compiles + stats.disk_hits >= stats.kernels);
  jitsoftmax_kernel_destroy(kernel);
  jitsoftmax_destroy(engine);
}

TEST_CASE("a tuning tells its candidates, the winner first, and a second one times nothing") {
  const Gpu gpu;
  const TemporaryDirectory directory;
  jitsoftmax_engine* const engine = make_engine(directory);
  Told told;
  jitsoftmax_tune_request request{};
  request.problem = &problem;
  request.rows = 8192;
  request.progress = tell_progress;
  request.result = tell_result;
  request.user = &told;
  jitsoftmax_tune_report report{};
  REQUIRE(jitsoftmax_autotune(engine, &request, sizeof request, &report, sizeof report) == JITSOFTMAX_OK);
  CHECK(told.progress > 0);
  CHECK(told.items == report.candidates);
  CHECK(told.winners == 1);
  CHECK(told.winner_first);
  CHECK(told.built_in == 1);
  CHECK(report.timed > 1);
  CHECK(report.few_rows == 0);
  CHECK(report.stopped == 0);
  CHECK(report.kept == 1);
  CHECK(report.seconds > 0);

  told = {};
  REQUIRE(jitsoftmax_autotune(engine, &request, sizeof request, &report, sizeof report) == JITSOFTMAX_OK);
  CHECK(report.timed == 0);
  CHECK(told.winners == 1);
  jitsoftmax_destroy(engine);
}
