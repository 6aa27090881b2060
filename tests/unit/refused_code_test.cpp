// An entry that the driver refuses is a miss: the directories behind it are asked, and where nothing can be
// compiled the error says what was refused.
#include <doctest/doctest.h>

#include "refused_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Refusal {
  ErrorCode code{};
  std::string message;
};

template <class Body>
Refusal refusal_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  FAIL("no error");
  return {};
}

}  // namespace

TEST_CASE("which results of the driver are about the code, and which are not") {
  for (const CUresult result : {CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_INVALID_PTX,
                                CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_NOT_FOUND}) {
    CAPTURE(static_cast<int>(result));
    CHECK_THROWS_AS(cuda::check(result, "cuLibraryLoadData"), cuda::RefusedCode);
    CHECK(refusal_of([&] { cuda::check(result, "cuCall"); }).code == ErrorCode::driver_error);
  }
  for (const CUresult result : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE}) {
    bool about_code = false;
    try {
      cuda::check(result, "cuCall");
    } catch (const cuda::RefusedCode&) {
      about_code = true;
    } catch (const Error&) {
    }
    CHECK_FALSE(about_code);
  }
}

TEST_CASE("what the driver takes is loaded once, and nothing is said") {
  RefusedCase test;
  test.fill("own", 'a');
  Code code(test.options({}, "own"));
  PickyLoader loader("");
  CHECK(load_for_launch(code, test, loader).back() == 'a');
  CHECK(loader.offered == "a");
  CHECK(test.warnings.empty());
  CHECK(stats_of(code).disk_hits == 1);
}

TEST_CASE("a layer's refused entry is passed over for the next directory's, with one warning, and stays") {
  RefusedCase test;
  test.fill("first", 'a');
  test.fill("second", 'b');
  test.fill("own", 'c');
  Code code(test.options({"first", "missing", "second"}, "own"));
  PickyLoader loader("ab");
  for (int launch = 0; launch < 2; ++launch) CHECK(load_for_launch(code, test, loader).back() == 'c');
  CHECK(loader.offered == "abcabc");
  REQUIRE(test.warnings.size() == 2);  // one an entry
  CHECK(mentions(test.warnings[0], test.path_in("first")));
  CHECK(mentions(test.warnings[0], "refused by the driver: cuLibraryLoadData"));
  CHECK(mentions(test.warnings[1], test.path_in("second")));
  CHECK(stats_of(code).disk_hits == 2);
  CHECK(stats_of(code).rejected_entries == 4);
  CHECK(stats_of(code).compiles == 0);
  CHECK(test.tag_in("first") == 'a');
  CHECK(test.tag_in("second") == 'b');
}

TEST_CASE("on_miss = fail: the error names the entry, the driver's reason and what to do") {
  RefusedCase test;
  test.fill("own", 'a');
  Options options = test.options({}, "own");
  options.on_miss = OnMiss::fail;
  Code code(options);
  PickyLoader loader("a");
  const Refusal refusal = refusal_of([&] { (void)load_for_launch(code, test, loader); });
  CAPTURE(refusal.message);
  CHECK(refusal.code == ErrorCode::not_cached);
  for (const std::string& part : {test.path_in("own"), std::string("refused by the driver: cuLibraryLoadData"),
                                  std::string("on_miss is 'fail'"), std::string("warmup"), std::string("sm_90")})
    CHECK(mentions(refusal.message, part));
  CHECK(loader.offered == "a");
  CHECK(test.tag_in("own") == 'a');
  CHECK(stats_of(code).disk_hits == 0);
}

TEST_CASE("without a compiler the error has both: what was refused, and what is missing") {
  RefusedCase test;
  test.fill("own", 'a');
  Options options = test.options({}, "own");
  options.nvrtc = "/nonexistent/libnvrtc.so";
  Code code(options);
  PickyLoader loader("a");
  const Refusal refusal = refusal_of([&] { (void)load_for_launch(code, test, loader); });
  CAPTURE(refusal.message);
  CHECK(refusal.code == ErrorCode::no_compiler);
  CHECK(mentions(refusal.message, test.path_in("own")));
  CHECK(mentions(refusal.message, "/nonexistent/libnvrtc.so"));
  CHECK(test.tag_in("own") == 'a');  // an entry that another driver may take is not removed for it
}
