// Storage that fails: the cache neither throws nor lies, warns once and leaves no temporary.
#include <doctest/doctest.h>

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

TEST_CASE("storage of which nothing works any more: one warning, and the program goes on") {
  class Gone final : public RealFiles {
   public:
    explicit Gone(int error) : error_(error) {}
    std::vector<char> read(const std::string&, std::int64_t, Info&, std::error_code& error) override {
      return fail(error), std::vector<char>{};
    }
    std::vector<char> read_start(const std::string&, std::size_t, Info&, std::error_code& error) override {
      return fail(error), std::vector<char>{};
    }
    Info directory_info(const std::string&, std::error_code& error) override { return fail(error), Info{}; }
    Info file_info(const std::string&, std::error_code& error) override { return fail(error), Info{}; }
    std::vector<std::string> list(const std::string&, std::error_code& error) override {
      return fail(error), std::vector<std::string>{};
    }
    void create_directories(const std::string&, std::error_code& error) override { fail(error); }
    std::string write_temporary(const std::string&, std::span<const char>, std::error_code& error) override {
      return fail(error), std::string{};
    }
    void touch(const std::string&, std::error_code& error) override { fail(error); }
    void rename(const std::string&, const std::string&, std::error_code& error) override { fail(error); }
    void remove(const std::string&, std::error_code& error) override { fail(error); }

   private:
    void fail(std::error_code& error) const { error.assign(error_, std::generic_category()); }
    int error_;
  };
  const Scratch scratch;
  const std::string directory = scratch / "cache";
  const jit::Program program = sample_program();
  REQUIRE(Store({.directory = directory}).put(fixtures::key_of(program), program, sample_cubin()));
  for (const int error : errors) {
    CAPTURE(error);
    Recorder recorder;
    Gone files(error);
    Store store({.directory = directory, .log = recorder.log(), .limit = 1}, files);
    for (int i = 0; i < 3; ++i) {
      CHECK_FALSE(store.find(fixtures::key_of(sample_program(i)), sample_program(i)));
      CHECK_FALSE(store.put(fixtures::key_of(sample_program(i)), sample_program(i), sample_cubin()));
    }
    CHECK(recorder.messages().size() == 1);
    CHECK(store.rejected() == 0);
  }
  CHECK(Store({.directory = directory}).find(fixtures::key_of(program), program));
}
