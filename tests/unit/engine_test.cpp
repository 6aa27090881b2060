// Promise: the engine on the CPU keeps the contract of engine.hpp: what is empty needs nothing, what is
// wrong is an argument error, and a missing cache directory is one warning.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <jitsoftmax/jitsoftmax.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace jitsoftmax;

namespace {

Options host_options(std::vector<std::string>* warnings = nullptr) {
  Options options;
  options.device = Device::host();
  options.cache_dir = "";
  if (warnings != nullptr) {
    options.log = [warnings](LogLevel, const std::string& message) { warnings->push_back(message); };
  }
  return options;
}

template <class Body>
ErrorCode code_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{};
}

}  // namespace

TEST_CASE("no rows or no columns succeed with null pointers, and make nothing") {
  Engine engine(host_options());
  Rows rows;
  engine.softmax({.cols = 5}, rows);
  rows.count = 9;
  engine.softmax({.cols = 0}, rows);
  engine.prepare({.cols = 0}).launch(rows);
  CHECK(engine.stats().kernels == 0);
  CHECK(engine.stats().compiles == 0);
}

TEST_CASE("rows are computed in place and out of place by the same call") {
  Engine engine(host_options());
  const Kernel kernel = engine.prepare({.cols = 3});
  std::vector<float> x{1, 2, 3, 3, 2, 1};
  std::vector<float> y(6);
  Rows rows;
  rows.in = x.data();
  rows.out = y.data();
  rows.count = 2;
  kernel.launch(rows);
  CHECK(y[2] == doctest::Approx(0.66524096));
  rows.out = x.data();
  kernel.launch(rows);
  CHECK(x == y);
}

TEST_CASE("what cannot be served is an argument error, and computes nothing") {
  Engine engine(host_options());
  std::vector<float> x(8, 7);
  Rows rows;
  rows.in = x.data();
  rows.out = x.data() + 1;
  rows.count = 2;
  CHECK(code_of([&] { engine.softmax({.cols = 3}, rows); }) == ErrorCode::invalid_argument);
  rows.out = x.data();
  rows.in_stride = 2;
  CHECK(code_of([&] { engine.softmax({.cols = 3}, rows); }) == ErrorCode::invalid_argument);
  rows.in_stride = 0;
  rows.count = -1;
  CHECK(code_of([&] { engine.softmax({.cols = 3}, rows); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { (void)engine.prepare({.cols = -3}); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { Kernel().launch(rows); }) == ErrorCode::invalid_argument);
  CHECK(x == std::vector<float>(8, 7));
}

TEST_CASE("tuning is refused where it cannot be done, before a GPU is looked for") {
  Options options = host_options();
  options.cache_dir = "/nowhere/that/is/written";
  CHECK(code_of([&] { (void)Engine(options).autotune({.cols = 64}, 8); }) == ErrorCode::invalid_argument);
  options.device = Device::current();
  CHECK(code_of([&] { (void)Engine(options).autotune({.cols = -1}, 8); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { (void)Engine(options).autotune({.cols = 64}, -8); }) == ErrorCode::invalid_argument);
  CHECK(Engine(options).autotune({.cols = 64}, 0).items.empty());
  CHECK(Engine(options).autotune({.cols = 0}, 8).winner.empty());
  Options fixed = options;
  fixed.variant.name = "v1";
  CHECK(code_of([&] { (void)Engine(fixed).autotune({.cols = 64}, 8); }) == ErrorCode::invalid_argument);
  Options same_bits = options;
  same_bits.deterministic = true;
  CHECK(code_of([&] { (void)Engine(same_bits).autotune({.cols = 64}, 8); }) == ErrorCode::invalid_argument);
  options.cache_dir = "";
  CHECK(code_of([&] { (void)Engine(options).autotune({.cols = 64}, 8); }) == ErrorCode::io_error);
}

TEST_CASE("threads share an engine and find the kernels of each other, however many problems there are") {
  Engine engine(host_options());
  std::vector<std::jthread> threads;
  std::vector<int> wrong(8);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t cols = 1; cols <= 300; ++cols) {
        std::vector<float> x(static_cast<std::size_t>(cols), 0.5F);
        Rows rows;
        rows.in = rows.out = x.data();
        rows.count = 1;
        engine.softmax({.cols = cols}, rows);
        if (std::abs(x[0] * static_cast<float>(cols) - 1) > 1e-5F) ++wrong[t];
      }
    });
  }
  threads.clear();
  CHECK(wrong == std::vector<int>(8));
}

TEST_CASE("no place for a cache is one warning, unless none is wanted") {
  ::unsetenv("HOME");  // NOLINT(concurrency-mt-unsafe): before any thread
  ::unsetenv("XDG_CACHE_HOME");
  std::vector<std::string> warnings;
  Options options = host_options(&warnings);
  const Engine silent(options);
  CHECK(warnings.empty());
  options.cache_dir.reset();
  const Engine warned(options);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("JITSOFTMAX_CACHE_DIR") != std::string::npos);
}

TEST_CASE("the environment is read as values, and a wrong one says what is known") {
  ::setenv("JITSOFTMAX_DEVICE", "cuda:3", 1);  // NOLINT(concurrency-mt-unsafe)
  ::setenv("JITSOFTMAX_CACHE_LAYERS", "/a::/b", 1);
  Options options = Options::from_environment();
  CHECK(options.device.kind() == Device::Kind::cuda);
  CHECK(options.device.ordinal() == 3);
  CHECK(options.cache_layers == std::vector<std::string>{"/a", "/b"});
  ::setenv("JITSOFTMAX_DEVICE", "cuda:-1", 1);
  CHECK(code_of([] { (void)Options::from_environment(); }) == ErrorCode::invalid_argument);
  ::unsetenv("JITSOFTMAX_DEVICE");
  ::setenv("JITSOFTMAX_ON_MISS", "maybe", 1);
  CHECK(code_of([] { (void)Options::from_environment(); }) == ErrorCode::invalid_argument);
  ::unsetenv("JITSOFTMAX_ON_MISS");
}

TEST_CASE("trusted owners are names or ids; one that nobody has is an error that names it") {
  const auto owners = [](const char* value) {
    ::setenv("JITSOFTMAX_TRUSTED_OWNERS", value, 1);
    std::string error;
    std::vector<std::uint32_t> ids;
    try {
      ids = Options::from_environment().trusted_owners;
    } catch (const Error& refused) {
      CHECK(refused.code() == ErrorCode::invalid_argument);
      error = refused.what();
    }
    ::unsetenv("JITSOFTMAX_TRUSTED_OWNERS");
    return std::pair(ids, error);
  };
  using Ids = std::vector<std::uint32_t>;
  CHECK(owners("").first.empty());
  CHECK(owners("root").first == Ids{0});
  CHECK(owners("1001,root,4294967294").first == Ids{1001, 0, 4294967294});
  for (const std::string user : {"no-such-user", "-1", "4294967295", "1001x", " root"}) {
    const auto [ids, error] = owners(("0," + user).c_str());
    CHECK(ids.empty());
    CHECK(error == "JITSOFTMAX_TRUSTED_OWNERS is '0," + user + "'; there is no user '" + user +
                       "'; write names or ids, with commas between them");
  }
}
