// The program without GPU and without NVRTC: it computes on the CPU, says what it did, and fails
// with the right exit code, one line on stderr and nothing half-written.
#include "program.hpp"

#include <doctest/doctest.h>
#include <jitsoftmax/version.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tools/npy.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;
using jitsoftmax::testing::mentions;
using jitsoftmax::testing::Outcome;

template <typename T>
void save(const std::string& path, DType dtype, const npy::Shape& shape, const std::vector<T>& values) {
  npy::Array array(npy::Header{dtype, shape});
  REQUIRE(array.bytes().size() == values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(array.bytes().data(), values.data(), array.bytes().size());
  npy::write(OutputFile(path), array);
}

template <typename T>
std::vector<T> load(const std::string& path, DType dtype, const npy::Shape& shape) {
  const npy::Array array = npy::read(path);
  REQUIRE(array.header.dtype == dtype);
  REQUIRE(array.header.shape == shape);
  std::vector<T> values(array.bytes().size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.bytes().data(), array.bytes().size());
  return values;
}

struct Bench {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string in = directory / "in.npy";
  std::string out = directory / "out.npy";

  Bench() { save<float>(in, DType::f32, {2, 2}, {0, ln3, ln3, 0}); }

  static constexpr float ln3 = 1.0986123F;

  // On a machine without NVRTC, wherever this runs.
  Outcome run(const std::vector<std::string>& arguments, std::map<std::string, std::string> environment = {},
              rlim_t limit = RLIM_INFINITY) const {
    environment.try_emplace("JITSOFTMAX_NVRTC", directory / "no-libnvrtc.so");
    return jitsoftmax::testing::Program(directory, arguments, environment, limit).wait();
  }
};

// One line, as all errors of the program begin.
bool is_error_line(const std::string& text) { return text.rfind("jitsoftmax: error: ", 0) == 0 && text.back() == '\n'; }

void check_near(const std::vector<float>& got, const std::vector<float>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("help and version are answers, not errors") {
  const Bench bench;
  CHECK(bench.run({"--version"}).out == "jitsoftmax " JITSOFTMAX_VERSION "\n");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"}, {"run", "--help"}, {"warmup", "--help"}}) {
    const Outcome outcome = bench.run(arguments);
    CHECK(outcome.code == 0);
    CHECK(mentions(outcome.out, "jitsoftmax run x.npy -o y.npy"));
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("results that standard output does not take are an error") {
  const Bench bench;
  CHECK(bench.run({"--version"}, {}, 0).code == 1);
  jitsoftmax::testing::write_file(bench.directory / "shapes.txt", "8 f32\n");
  CHECK(bench.run({"warmup", "--shapes", bench.directory / "shapes.txt", "--arch", "sm_90", "--dry-run"}, {}, 0).code ==
        1);
}

TEST_CASE("a command line that makes no sense ends with 2 and one line on stderr") {
  const Bench bench;
  // Stands for /dev/null and all devices, none of which a test may put at risk.
  const std::string fifo = bench.directory / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"fly"},
           {"run"},
           {"run", bench.in},
           {"run", bench.in, "-o", bench.out, "--fast"},
           {"run", bench.in, "-o", bench.out, "--op", "max"},
           {"run", bench.in, "-o", bench.out, "--dtype", "bf16"},
           {"run", bench.in, "-o", bench.out, "--axis", "x"},
           {"run", bench.in, "-o", bench.out, "--axis", "2"},
           {"run", bench.in, "-o", bench.out, "--axis", "-3"},
           {"run", bench.in, "-o", bench.out, "--device", "gpu"},
           {"run", bench.in, "-o", bench.out, "--device", "current"},
           {"run", bench.in, "-o", bench.out, "--arch", "volta"},
           {"run", bench.directory / "missing.npy", "-o", bench.out},
           {"run", bench.in, "-o", bench.directory.path()},
           {"run", bench.in, "-o", fifo},
           {"autotune"},
           {"autotune", "--shapes", bench.directory / "missing.txt"},
           {"autotune", "--shapes", bench.in, "--effort", "some"},
           {"warmup", "--arch", "sm_90"},
           {"warmup", "--shapes", bench.directory / "missing.txt", "--arch", "sm_90"},
           {"warmup", "--shapes", bench.in, "--arch", "sm_90", "--jobs", "0"},
       }) {
    const Outcome outcome = bench.run(arguments);
    CAPTURE(arguments.empty() ? "nothing" : arguments.back());
    CHECK(outcome.code == 2);
    CHECK(is_error_line(outcome.err));
    CHECK(outcome.out.empty());
  }
  CHECK_FALSE(std::filesystem::exists(bench.out));
  CHECK(std::filesystem::is_fifo(fifo));
}

TEST_CASE("the last axis is the default, any axis can be asked for") {
  const Bench bench;
  const Outcome last = bench.run({"run", bench.in, "-o", bench.out, "--verify"});
  CHECK(last.code == 0);
  CHECK(mentions(last.out, "computed on the CPU ("));
  CHECK(mentions(last.out, "verified 4 elements"));
  CHECK(mentions(last.out, "wrote " + bench.out + ": (2, 2) of float32"));
  check_near(load<float>(bench.out, DType::f32, {2, 2}), {0.25F, 0.75F, 0.75F, 0.25F});

  // (2, 3, 2), softmax along the middle: the rows are {0, ln 3, ln 3} and {0, 0, 0} shifted.
  const float a = Bench::ln3;
  save<float>(bench.in, DType::f32, {2, 3, 2}, {0, 1, a, 1, a, 1, 5, 0, 5, 0, 5 - 200, -200});
  for (const char* axis : {"1", "-2"}) {
    REQUIRE(bench.run({"run", bench.in, "-o", bench.out, "--axis", axis, "--verify"}).code == 0);
    const float third = 1.0F / 3;
    check_near(load<float>(bench.out, DType::f32, {2, 3, 2}),
               {1.0F / 7, third, 3.0F / 7, third, 3.0F / 7, third, 0.5F, 0.5F, 0.5F, 0.5F, 0, 0});
  }
}

TEST_CASE("operation, scale, types and masked rows are those that were asked for") {
  const Bench bench;
  REQUIRE(bench.run({"run", bench.in, "-o", bench.out, "--op", "log_softmax", "--verify"}).code == 0);
  check_near(load<float>(bench.out, DType::f32, {2, 2}), {-1.3862944F, -0.2876821F, -0.2876821F, -1.3862944F});
  REQUIRE(bench.run({"run", bench.in, "-o", bench.out, "--scale", "-1", "--verify"}).code == 0);
  check_near(load<float>(bench.out, DType::f32, {2, 2}), {0.75F, 0.25F, 0.25F, 0.75F});

  REQUIRE(bench.run({"run", bench.in, "-o", bench.out, "--dtype", "f16", "--verify"}).code == 0);
  CHECK(load<std::uint16_t>(bench.out, DType::f16, {2, 2}) ==
        std::vector<std::uint16_t>{0x3400, 0x3a00, 0x3a00, 0x3400});
  save<std::uint16_t>(bench.in, DType::f16, {1, 2}, {0, 0});
  REQUIRE(bench.run({"run", bench.in, "-o", bench.out, "--dtype", "f32", "--verify"}).code == 0);
  check_near(load<float>(bench.out, DType::f32, {1, 2}), {0.5F, 0.5F});
  save<double>(bench.in, DType::f64, {4}, {1, 1, 1, 1});
  REQUIRE(bench.run({"run", bench.in, "-o", bench.out, "--verify"}).code == 0);
  CHECK(load<double>(bench.out, DType::f64, {4}) == std::vector<double>(4, 0.25));
  const Outcome narrowed = bench.run({"run", bench.in, "-o", bench.out, "--dtype", "f32"});
  CHECK(narrowed.code == 2);
  CHECK(mentions(narrowed.err, "x.astype(numpy.float32)"));

  const float inf = std::numeric_limits<float>::infinity();
  save<float>(bench.in, DType::f32, {2}, {-inf, -inf});
  REQUIRE(bench.run({"run", bench.in, "-o", bench.out, "--verify"}).code == 0);
  CHECK(std::isnan(load<float>(bench.out, DType::f32, {2})[0]));
  REQUIRE(bench.run({"run", bench.in, "-o", bench.out, "--masked-rows", "zero", "--verify"}).code == 0);
  CHECK(load<float>(bench.out, DType::f32, {2}) == std::vector<float>{0, 0});
}

TEST_CASE("an empty array has an empty result, for which nothing is compiled") {
  const Bench bench;
  for (const npy::Shape& shape :
       std::vector<npy::Shape>{{0}, {0, 5}, {5, 0}, {2, 0, 3}, {std::int64_t{1} << 62, 8, 0}}) {
    save<float>(bench.in, DType::f32, shape, {});
    const Outcome outcome = bench.run({"run", bench.in, "-o", bench.out, "--axis", "0", "--verify", "--arch", "sm_90"});
    CHECK(outcome.code == 0);
    CHECK(mentions(outcome.out, "nothing to compute"));
    CHECK(load<float>(bench.out, DType::f32, shape).empty());
  }
}

TEST_CASE("without NVRTC the CPU computes all the same; asking for an architecture is an error then") {
  const Bench bench;
  const Outcome plain = bench.run({"run", bench.in, "-o", bench.out});
  CHECK(plain.code == 0);
  CHECK(mentions(plain.out, "compiled no kernel: "));
  CHECK(mentions(plain.out, "no-libnvrtc.so"));
  std::filesystem::remove(bench.out);
  const Outcome asked = bench.run({"run", bench.in, "-o", bench.out, "--arch", "sm_80"});
  CHECK(asked.code == 3);
  CHECK(is_error_line(asked.err));
  CHECK(mentions(asked.err, "no-libnvrtc.so"));
  CHECK_FALSE(std::filesystem::exists(bench.out));
  const Outcome host = bench.run({"run", bench.in, "-o", bench.out, "--device", "host"});
  CHECK(host.code == 0);
  CHECK_FALSE(mentions(host.out, "compiled"));

  jitsoftmax::testing::write_file(bench.directory / "shapes.txt", "8 f32\n");
  CHECK(bench.run({"warmup", "--shapes", bench.directory / "shapes.txt", "--arch", "sm_90"}).code == 3);
}

TEST_CASE("a GPU that is asked for and is not there ends with 5") {
  const Bench bench;
  const Outcome outcome = bench.run({"run", bench.in, "-o", bench.out, "--device", "cuda:0"});
  CHECK(outcome.code == 5);
  CHECK(is_error_line(outcome.err));
  CHECK(bench.run({"run", bench.in, "-o", bench.out}, {{"JITSOFTMAX_DEVICE", "cuda:0"}}).code == 5);
  // An explicit option wins over the environment.
  CHECK(bench.run({"run", bench.in, "-o", bench.out, "--device", "host"}, {{"JITSOFTMAX_DEVICE", "cuda:0"}}).code == 0);
  CHECK(bench.run({"run", bench.in, "-o", bench.out}, {{"JITSOFTMAX_DEVICE", "host"}}).code == 0);
}

TEST_CASE("tuning needs a GPU: without one it ends with 5, says so, and touches nothing") {
  const Bench bench;
  const std::string shapes = bench.directory / "shapes.txt";
  jitsoftmax::testing::write_file(shapes, "1024 f32 1024\n");
  for (const char* effort : {"quick", "full"}) {
    const Outcome outcome = bench.run({"autotune", "--shapes", shapes, "--effort", effort});
    CHECK(outcome.code == 5);
    CHECK(is_error_line(outcome.err));
    CHECK(mentions(outcome.err, "a GPU is needed"));
    CHECK(outcome.out.empty());
  }
  CHECK_FALSE(std::filesystem::exists(bench.directory / "cache"));
}

TEST_CASE("a shapes file with a bad line is named with the line") {
  const Bench bench;
  const std::string shapes = bench.directory / "shapes.txt";
  jitsoftmax::testing::write_file(shapes, "8 f32\n9 f33\n");
  const Outcome outcome = bench.run({"warmup", "--shapes", shapes, "--arch", "sm_90"});
  CHECK(outcome.code == 2);
  CHECK(mentions(outcome.err, shapes + ":2:3: 'f33'"));
}

TEST_CASE("a dry run needs no compiler, counts each kernel once, and writes nothing") {
  const Bench bench;
  const std::string shapes = bench.directory / "shapes.txt";
  const auto to_compile = [&](const std::string& text, const std::string& archs) {
    jitsoftmax::testing::write_file(shapes, text);
    const Outcome outcome = bench.run({"warmup", "--shapes", shapes, "--arch", archs, "--dry-run", "--json"});
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.out).at("to_compile").get<int>();
  };
  const int one = to_compile("4096 f32\n", "sm_90");
  CHECK(one > 0);
  CHECK(to_compile("4096 f32 1\n4096 f32 2\n", "sm_90") == one);
  CHECK(to_compile("4096 f32\n", "sm_80,sm_90") == 2 * one);
  CHECK(mentions(bench.run({"warmup", "--shapes", shapes, "--arch", "sm_80,sm_90", "--dry-run"}).out,
                 std::to_string(2 * one) + " to compile, about "));
  CHECK_FALSE(std::filesystem::exists(bench.directory / "cache"));
}

TEST_CASE("the output may be the input, a new file, or behind a symbolic link") {
  const Bench bench;
  const std::vector<float> expected{0.25F, 0.75F, 0.75F, 0.25F};
  const std::string original = jitsoftmax::testing::read_file(bench.in);
  std::filesystem::create_symlink("real.npy", bench.directory / "link.npy");
  jitsoftmax::testing::write_file(bench.directory / "real.npy", "old");
  ::chmod((bench.directory / "real.npy").c_str(), 0640);
  REQUIRE(bench.run({"run", bench.in, "-o", bench.directory / "link.npy"}).code == 0);
  CHECK(std::filesystem::is_symlink(bench.directory / "link.npy"));
  check_near(load<float>(bench.directory / "real.npy", DType::f32, {2, 2}), expected);
  struct stat info = {};
  REQUIRE(::stat((bench.directory / "real.npy").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0640);

  REQUIRE(bench.run({"run", bench.in, "-o", bench.in}).code == 0);
  check_near(load<float>(bench.in, DType::f32, {2, 2}), expected);
}

TEST_CASE("an output that cannot be written leaves no trace, and what was there stays") {
  const Bench bench;
  save<float>(bench.in, DType::f32, {1000, 100}, std::vector<float>(100000));
  jitsoftmax::testing::write_file(bench.out, "precious");
  const std::size_t files = bench.directory.file_count();
  const Outcome full = bench.run({"run", bench.in, "-o", bench.out}, {}, 100000);
  CHECK(full.code == 1);
  CHECK(is_error_line(full.err));
  CHECK(mentions(full.err, "cannot write '" + bench.out + "'"));
  CHECK(jitsoftmax::testing::read_file(bench.out) == "precious");
  CHECK(bench.directory.file_count() == files + 2);  // what the program said

  const Outcome nowhere = bench.run({"run", bench.in, "-o", bench.directory / "no/such/out.npy"});
  CHECK(nowhere.code == 1);
  CHECK(mentions(nowhere.err, "No such file or directory"));
}

TEST_CASE("a signal ends a run that waits for its input, with the signal's code and no output") {
  const Bench bench;
  const std::string fifo = bench.directory / "fifo.npy";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    jitsoftmax::testing::Program program(bench.directory, {"run", fifo, "-o", bench.out});
    // Opened for writing once the program reads from it, so that it is past its start-up.
    const int writer = ::open(fifo.c_str(), O_WRONLY);
    REQUIRE(writer >= 0);
    REQUIRE(::write(writer, "\x93NUMPY", 6) == 6);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    program.signal(signal);
    const Outcome outcome = program.wait();
    ::close(writer);
    CHECK(outcome.code == 128 + signal);
    CHECK(mentions(outcome.err, "interrupted"));
    CHECK_FALSE(std::filesystem::exists(bench.out));
  }
}

TEST_CASE("an array may come through a pipe") {
  const Bench bench;
  const std::string fifo = bench.directory / "fifo.npy";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  jitsoftmax::testing::Program program(bench.directory, {"run", fifo, "-o", bench.out, "--device", "host"});
  jitsoftmax::testing::write_file(fifo, jitsoftmax::testing::read_file(bench.in));
  CHECK(program.wait().code == 0);
  check_near(load<float>(bench.out, DType::f32, {2, 2}), {0.25F, 0.75F, 0.75F, 0.25F});
}

TEST_CASE("JSON is one object with what the lines say") {
  const Bench bench;
  const Outcome outcome = bench.run({"run", bench.in, "-o", bench.out, "--verify", "--json"});
  REQUIRE(outcome.code == 0);
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("device") == "host");
  CHECK(json.at("written") == true);
  CHECK(json.at("in").at("shape") == nlohmann::json({2, 2}));
  CHECK(json.at("verified").at("wrong") == 0);
  CHECK(mentions(json.at("not_warmed").get<std::string>(), "no-libnvrtc.so"));
}

TEST_CASE("more is said where more is asked for, the log on stderr, results on stdout") {
  const Bench bench;
  const Outcome quiet = bench.run({"run", bench.in, "-o", bench.out});
  CHECK(quiet.err.empty());
  const Outcome verbose = bench.run({"run", bench.in, "-o", bench.out, "--verbose"});
  CHECK(mentions(verbose.out, "kernel host, chosen by the library"));
  CHECK(mentions(verbose.out, "32 bytes read and written"));
  CHECK(mentions(verbose.err, "jitsoftmax: info: no GPU: "));
  CHECK(bench.run({"run", bench.in, "-o", bench.out, "--verbose"}, {{"JITSOFTMAX_LOG", "off"}}).err.empty());
}

TEST_CASE("explain without NVRTC and without the kernel ends with 3, a shape that makes no sense with 2") {
  const Bench bench;
  const Outcome outcome = bench.run({"explain", "4096", "f32"});
  CHECK(outcome.code == 3);
  CHECK(outcome.out.empty());
  CHECK(mentions(outcome.err, "no-libnvrtc.so"));
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"explain"},
                                             {"explain", "4096"},
                                             {"explain", "0", "f32"},
                                             {"explain", "4096", "f31"},
                                             {"explain", "4096", "f32", "-3"},
                                             {"explain", "4096", "f32", "--arch", "hopper"},
                                             {"explain", "4096", "f32", "--op", "max"},
                                             {"explain", "4096", "f32", "--arch", "sm_90", "--gpu", "0"},
                                             {"explain", "9223372036854775807", "f32", "2"}}) {
    CAPTURE(arguments.back());
    CHECK(bench.run(arguments).code == 2);
  }
  // A GPU that was asked for has to be there.
  CHECK(bench.run({"explain", "4096", "f32", "--gpu", "0"}).code == 5);
}
