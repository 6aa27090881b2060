// Whatever the storage does, who asks for code gets what the compiler made of it.
#include <doctest/doctest.h>

#include <cerrno>
#include <fstream>

#include "api/code.hpp"
#include "nvrtc.hpp"
#include "plan/choice.hpp"
#include "small_tmpfs.hpp"
#include "unit/faulty_files.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;
using namespace fixtures;  // NOLINT(google-build-using-namespace)

namespace {

const Arch arch{9, 0};

Options with_cache(const std::string& directory, Recorder& recorder) {
  Options options;
  options.cache_dir = directory;
  options.nvrtc = nvrtc_path();
  options.log = [log = recorder.log()](LogLevel level, const std::string& message) {
    if (level >= LogLevel::warning) log(level, message);
  };
  return options;
}

Code::Result get(Code& code) { return code.get(plan::choose({.cols = 64}, arch).front(), arch, Code::Purpose::launch); }

std::vector<char> expected() {
  (void)compiler_or_skip();
  Recorder recorder;
  Code code(with_cache("", recorder));
  return get(code).cubin.payload;
}

}  // namespace

TEST_CASE("an entry that cannot be read back after its rename: the bytes in memory are used") {
  const std::vector<char> payload = expected();
  // Written and renamed, and then not there, as on a network file system that shows it later.
  FaultyFiles files(Operation::read, ENOENT);
  const Scratch scratch;
  Recorder recorder;
  Code code(with_cache(scratch / "cache", recorder), files);
  for (int round = 0; round < 2; ++round) {
    const Code::Result result = get(code);
    CHECK(result.compiled);
    CHECK(result.cubin.payload == payload);
  }
  CHECK(recorder.messages().empty());
  CHECK(files_below(scratch.path()).size() == 1);
}

TEST_CASE("storage that fails: right code, and one warning") {
  const std::vector<char> payload = expected();
  const Scratch scratch;
  Recorder ignored;
  Code writer(with_cache(scratch / "read", ignored));
  CHECK(get(writer).compiled);  // there is something that cannot be read
  struct Fault {
    Operation operation;
    int error;
    const char* directory;
  };
  for (const Fault& fault :
       {Fault{Operation::read, ESTALE, "read"}, Fault{Operation::directory_info, EACCES, "info"},
        Fault{Operation::create_directories, EROFS, "create"}, Fault{Operation::write_temporary, ENOSPC, "write"},
        Fault{Operation::rename, EBUSY, "rename"}}) {
    CAPTURE(fault.directory);
    FaultyFiles files(fault.operation, fault.error);
    Recorder recorder;
    Code code(with_cache(scratch / fault.directory, recorder), files);
    const Code::Result result = get(code);
    CHECK(result.compiled);
    CHECK(result.cubin.payload == payload);
    CHECK(recorder.messages().size() == 1);
  }
}

TEST_CASE("a disk that is full: right code, one warning, no partial file") {
  const std::vector<char> payload = expected();
  const Scratch scratch;
  const int result = in_small_tmpfs(scratch.path(), "size=64k", [&] {
    std::ofstream(scratch / "ballast") << std::string(100'000, 'x');
    Recorder recorder;
    Code code(with_cache(scratch / "cache", recorder));
    const Code::Result made = get(code);
    if (!made.compiled || made.cubin.payload != payload) return 1;
    if (recorder.messages().size() != 1) return 2;
    return files_below(scratch / "cache").empty() ? 0 : 3;
  });
  skip_without_tmpfs(result);
  CHECK(result == 0);
}
