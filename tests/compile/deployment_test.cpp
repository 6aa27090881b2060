// Promise: a layer that was warmed elsewhere serves every shape it was warmed for, in every alignment and
// number of rows, to another user, from read-only storage, without a home and without NVRTC; and what it was
// not warmed for is an error with the command that adds it. Needs NVRTC to warm; the launch itself is in
// tests/gpu/deployment_test.cpp.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "api/code.hpp"
#include "base/shell_word.hpp"
#include "plan/choice.hpp"
#include "program.hpp"
#include "tools/shapes.hpp"
#include "unit/cache_fixtures.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using jitsoftmax::testing::mentions;
using jitsoftmax::testing::read_file;
using jitsoftmax::testing::write_file;
namespace fs = std::filesystem;

constexpr const char* shapes_text =
    "77,1000,16384 f32\n"  // one access a row at most, whole accesses, few rows in a cluster
    "1024 bf16->f32 log_softmax\n"
    "512 f16 strided\n"
    "33..35 f64\n";
constexpr std::array archs{Arch{8, 0}, Arch{9, 0}};

int shell(const std::string& command) {
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe,cert-env33-c)
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

struct Site {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string layer = directory / "layer";
  std::string shapes = directory / "shapes.txt";
  std::string warmup = " warmup --arch sm_80,sm_90 --cache-dir " + layer + " --shapes ";

  Site() {
    write_file(shapes, shapes_text);
    const int code = shell(JITSOFTMAX_PROGRAM + warmup + shapes + " > " + (directory / "out"));
    if (code == 3) {
      std::printf("skipped: no NVRTC to warm a cache with\n");
      std::exit(77);  // NOLINT(concurrency-mt-unsafe): nothing else runs
    }
    REQUIRE(code == 0);
    REQUIRE(shell("chmod a+rx " + directory.path() + " && chmod -R a+rX,a-w " + layer) == 0);
  }
  ~Site() { (void)shell("chmod -R u+w " + layer); }
};

// Makes the storage read-only and every NVRTC that can be found unusable, for this process and its children.
// False: that is not allowed here.
bool seal(const Site& site) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (::mount(site.layer.c_str(), site.layer.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
  if (::mount(nullptr, site.layer.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0) return false;
  // Until the program finds none.
  const std::string found = site.directory / "found";
  const std::string find = std::string(JITSOFTMAX_PROGRAM) +
                           " doctor --cache-dir '' | sed -n 's/^ok  *NVRTC: \\(.*\\), version.*/\\1/p' > " + found;
  for (int i = 0; i < 8; ++i) {
    if (shell(find) != 0) return false;
    std::string library;
    std::ifstream file(found);
    if (!std::getline(file, library)) return true;
    if (::mount("/dev/null", library.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
  }
  return false;
}

// What a launch of rows at these offsets, in elements, runs.
plan::Specialization serving(const plan::Bundle& bundle, const Problem& problem, std::int64_t count, int in, int out) {
  alignas(256) static std::array<char, 1024> memory{};
  Rows rows;
  rows.count = count;
  rows.in = memory.data() + in * size_of(problem.in);
  rows.out = memory.data() + out * size_of(problem.out);
  if (problem.layout == Layout::strided) rows.inner = count;
  rows.in_stride = rows.out_stride = problem.cols * rows.inner;
  return bundle[plan::select(bundle, rows)];
}

// 0: every launch of every shape finds its kernel.
int serve_all(const Options& options) {
  Code code(options);
  for (const Problem& problem : tools::problems_of(tools::parse_shapes(shapes_text, "shapes"))) {
    for (const Arch& arch : archs) {
      const plan::Bundle bundle = plan::choose(problem, arch);
      std::set<std::string> served;
      for (const std::int64_t count : {1, 2, 64, 65, 100'000}) {
        for (int in = 0; in < 16; ++in) {
          for (int out = 0; out < 16; ++out) {
            const plan::Specialization s = serving(bundle, problem, count, in, out);
            if (!served.insert(plan::name_expression(s)).second) continue;
            if (code.get(s, arch, Code::Purpose::launch).compiled) return 10;
          }
        }
      }
      for (const plan::Specialization& member : bundle) {
        const std::string name = plan::name_expression(member);
        if (served.contains(name)) continue;
        std::fprintf(stderr, "no launch of %s runs %s: was every case tried?\n", plan::describe(problem).c_str(),
                     name.c_str());
        return 11;
      }
    }
  }
  return 0;
}

Options deployed(const Site& site) {
  Options options;
  options.on_miss = OnMiss::fail;
  options.cache_layers = {site.layer};
  return options;
}

std::string error_of(Code& code, const Problem& problem) {
  try {
    (void)code.get(plan::choose(problem, Arch{9, 0}).back(), {9, 0}, Code::Purpose::launch);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::not_cached);
    return error.what();
  }
  return "served";
}

}  // namespace

TEST_CASE("every warmed shape is served without a compiler, a home or the right to write") {
  const Site site;
  const bool root = ::geteuid() == 0;
  if (!root) MESSAGE("not as another user: only root can become one");
  const auto live = [&](bool sealed) {
    for (const char* name : {"HOME", "XDG_CACHE_HOME", "JITSOFTMAX_CACHE_DIR", "JITSOFTMAX_NVRTC"}) ::unsetenv(name);
    ::setenv("JITSOFTMAX_CACHE_LAYERS", site.layer.c_str(), 1);
    ::setenv("JITSOFTMAX_ON_MISS", "fail", 1);
    if (sealed && !seal(site)) return 77;
    Options options = deployed(site);
    if (!sealed) options.nvrtc = "/nonexistent/libnvrtc.so";
    if (!sealed) ::setenv("JITSOFTMAX_NVRTC", options.nvrtc.c_str(), 1);
    if (root && (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
                 ::setresuid(nobody, nobody, nobody) != 0))
      return 1;
    if (std::ofstream(site.layer + "/new")) return 2;
    if (const int failed = serve_all(options); failed != 0) return failed;
    const std::string program = std::string(JITSOFTMAX_PROGRAM) + " ";
    const std::string silently = " > /dev/null 2> /dev/null";
    if (shell(program + "cache verify --shapes " + site.shapes + " --arch sm_80,sm_90" + silently) != 0) return 3;
    if (shell(program + "explain 1000 f32 --arch sm_90" + silently) != 0) return 4;
    if (shell(program + "explain 1001 f32 --arch sm_90" + silently) != 3) return 5;  // there is no NVRTC
    return 0;
  };
  CHECK(in_child([&] { return live(false); }) == 0);
  const int sealed = in_child([&] { return live(true); });
  if (sealed == 77) {
    MESSAGE("not behind a read-only mount with NVRTC hidden: mounting is not allowed here");
  } else {
    CHECK(sealed == 0);
  }
}

TEST_CASE("a shape that was not warmed is named with a command that adds it as it is typed") {
  const Site site;
  REQUIRE(shell("chmod -R u+w " + site.layer) == 0);
  for (const Problem& problem :
       {Problem{.cols = 5000}, Problem{.cols = 129, .in = DType::bf16, .out = DType::f32, .op = Op::log_softmax},
        Problem{.cols = 70, .in = DType::f16, .out = DType::f16, .op = Op::softmax, .layout = Layout::strided}}) {
    Options options = deployed(site);
    options.cache_dir = "";
    Code code(options);
    const std::string message = error_of(code, problem);
    CAPTURE(message);
    CHECK(message.starts_with("no kernel for " + plan::describe(problem) + " on sm_90: "));
    CHECK(mentions(message, "looked in " + site.layer + ")"));
    const std::size_t at = message.find("echo '");
    REQUIRE(at != std::string::npos);
    const std::string folder = fs::path(JITSOFTMAX_PROGRAM).parent_path();
    CHECK(shell("PATH=" + base::shell_word(folder) + ":$PATH; " + message.substr(at) + " > /dev/null") == 0);
    CHECK(error_of(code, problem) == "served");
  }
}
