// Storage that fails: the cache neither throws nor lies, warns once and leaves no temporary.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <functional>
#include <iterator>

#include "cache/store.hpp"
#include "cache_fixtures.hpp"
#include "faulty_files.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using cache::Key;
using cache::Store;

constexpr Operation operations[] = {
    Operation::read,   Operation::directory_info, Operation::create_directories, Operation::write_temporary,
    Operation::rename, Operation::remove};
constexpr int errors[] = {EACCES, EROFS, ENOSPC, EIO, ESTALE, EBUSY, EXDEV, ENOENT};

std::size_t temporaries_below(const std::string& directory) {
  std::size_t count = 0;
  for (const std::string& path : files_below(directory))
    count += std::filesystem::path(path).extension() == ".jsc" ? 0U : 1U;
  return count;
}

// Programs 0 and 1 are in the directory, 2 to 5 are not.
void check_faults(Operation operation, int error) {
  const Scratch scratch;
  const std::string directory = scratch / "cache";
  const jit::Cubin cubin = sample_cubin();
  const auto key = [](int i) { return fixtures::key_of(sample_program(i)); };
  for (int i = 0; i < 2; ++i) REQUIRE(Store({.directory = directory}).put(key(i), sample_program(i), cubin));

  Recorder recorder;
  FaultyFiles files(operation, error);
  Store store({.directory = directory, .log = recorder.log()}, files);
  const bool reads = operation != Operation::read && operation != Operation::directory_info;
  const bool writes = operation == Operation::read || operation == Operation::remove;
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    const auto found = store.find(key(i), sample_program(i));
    CHECK(found.has_value() == (reads && i < 2));
    if (found) CHECK(same(*found, cubin));
    const bool put = store.put(key(i), sample_program(i), cubin);
    if (writes) CHECK(put);
    if (put) CHECK(Store({.directory = directory}).find(key(i), sample_program(i)));
  }
  // Nothing that was there is gone.
  for (int i = 0; i < 2; ++i) CHECK(Store({.directory = directory}).find(key(i), sample_program(i)));
  CHECK(temporaries_below(directory) == 0);
  CHECK(store.rejected() == 0);
  CHECK(recorder.messages().size() <= 1);
  const bool unseen = operation == Operation::remove || error == 0 || (operation == Operation::read && error == ENOENT);
  CHECK(recorder.messages().empty() == unseen);
}

}  // namespace

TEST_CASE("each operation that fails in each way") {
  for (const Operation operation : operations) {
    for (const int error : errors) {
      CAPTURE(static_cast<int>(operation));
      CAPTURE(error);
      check_faults(operation, error);
    }
  }
}

TEST_CASE("a file operation that finds no memory") {
  for (const Operation operation :
       {Operation::read, Operation::directory_info, Operation::create_directories, Operation::write_temporary}) {
    CAPTURE(static_cast<int>(operation));
    check_faults(operation, 0);
  }
}

TEST_CASE("a fault in a layer does not hide what is behind it") {
  const Scratch scratch;
  const jit::Program program = sample_program();
  const Key key = fixtures::key_of(program);
  REQUIRE(Store({.directory = scratch / "layer"}).put(key, program, sample_cubin()));
  REQUIRE(Store({.directory = scratch / "own"}).put(key, program, sample_cubin()));
  // Fails for the layer only.
  class BrokenLayer final : public RealFiles {
   public:
    std::vector<char> read(const std::string& path, std::int64_t limit, Info& info, std::error_code& error) override {
      if (path.find("/layer/") == std::string::npos) return RealFiles::read(path, limit, info, error);
      error.assign(ESTALE, std::generic_category());
      return {};
    }
  } files;
  Recorder recorder;
  Store store({.layers = {scratch / "layer"}, .directory = scratch / "own", .log = recorder.log()}, files);
  CHECK(store.find(key, program));
  CHECK(recorder.messages().size() == 1);
}

TEST_CASE("a tmpfs of 1 MB that fills up: one warning, no partial file") {
  const Scratch scratch;
  const int result = in_child([&] {
    if (::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return 77;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) return 77;
    Recorder recorder;
    Store store({.directory = scratch / "cache", .log = recorder.log()});
    int kept = 0;
    for (int i = 0; i < 20; ++i) {
      const jit::Program program = sample_program(i);
      const bool put = store.put(fixtures::key_of(program), program, sample_cubin(100'000));
      if (put != store.find(fixtures::key_of(program), program).has_value()) return 1;
      kept += put ? 1 : 0;
    }
    if (kept < 5 || kept > 10) return 2;
    if (recorder.messages().size() != 1) return 3;
    return files_below(scratch.path()).size() == static_cast<std::size_t>(kept) ? 0 : 4;
  });
  if (result == 77) {
    MESSAGE("SKIPPED: cannot mount a tmpfs here");
    return;
  }
  CHECK(result == 0);
}
