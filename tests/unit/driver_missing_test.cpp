// Promise: without a usable libcuda nothing crashes, and the error names what was tried and what to do.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <jitsoftmax/error.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/driver.hpp"

namespace fs = std::filesystem;
using jitsoftmax::Error;
using jitsoftmax::ErrorCode;
namespace cuda = jitsoftmax::cuda;

namespace {

template <typename Call>
std::string no_driver_message(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK_EQ(static_cast<int>(error.code()), static_cast<int>(ErrorCode::no_driver));
    return error.what();
  }
  FAIL("no error");
  return {};
}

void check_has(const std::string& message, const std::string& part) {
  INFO(message);
  INFO(part);
  CHECK(message.find(part) != std::string::npos);
}

std::string open_message(const std::vector<std::string>& names) {
  return no_driver_message([&] { (void)cuda::open_driver(names); });
}

bool driver_present() {
  try {
    (void)cuda::driver();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("Files that cannot be opened are all named, with the loader's reason and what to do") {
  const std::string message = open_message({"/nonexistent/libcuda.so.1", "libcuda-of-nobody.so"});
  check_has(message, "/nonexistent/libcuda.so.1");
  check_has(message, "libcuda-of-nobody.so");
  check_has(message, "No such file");
  check_has(message, "Install NVIDIA's driver");
  check_has(message, "Device::host()");
}

TEST_CASE("A file that is no library, and a library that is no driver, are refused") {
  const fs::path junk = fs::temp_directory_path() / ("driver_missing_test." + std::to_string(std::random_device{}()));
  std::ofstream(junk) << "not a library";
  check_has(open_message({junk.string()}), junk.string());
  fs::remove(junk);
  check_has(open_message({"libm.so.6"}), "cuInit");
}

TEST_CASE("Without a driver every use says no_driver, each time and from every thread") {
  if (driver_present()) {
    MESSAGE("there is a driver on this machine");
    return;
  }
  for (int i = 0; i < 2; ++i) {
    const std::string message = no_driver_message([] { (void)cuda::driver(); });
    check_has(message, "libcuda.so");
    no_driver_message([] { (void)cuda::current_device(); });
    no_driver_message([] { const cuda::PrimaryContext context(0); });
  }
  std::vector<std::thread> threads;
  std::vector<int> codes(4);
  for (int& code : codes)
    threads.emplace_back([&code] {
      try {
        (void)cuda::driver();
      } catch (const Error& error) {
        code = static_cast<int>(error.code());
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int code : codes) CHECK_EQ(code, static_cast<int>(ErrorCode::no_driver));
  CHECK(cuda::driver_to_release_with() == nullptr);
  CHECK(cuda::driver_path().empty());
}

TEST_CASE("A null context needs no driver") { const cuda::ContextScope scope(nullptr); }

TEST_CASE("Results are errors with a code and a text, with or without a driver's names") {
  CHECK_NOTHROW(cuda::check(CUDA_SUCCESS, "cuCall"));
  const auto code_of = [](CUresult result) {
    try {
      cuda::check(result, "cuCall");
    } catch (const Error& error) {
      check_has(error.what(), "cuCall: ");
      return error.code();
    }
    return ErrorCode::internal;
  };
  CHECK(code_of(CUDA_ERROR_OUT_OF_MEMORY) == ErrorCode::out_of_memory);
  CHECK(code_of(CUDA_ERROR_INVALID_CONTEXT) == ErrorCode::no_context);
  CHECK(code_of(CUDA_ERROR_INVALID_VALUE) == ErrorCode::driver_error);
  check_has(cuda::describe(CUDA_ERROR_INVALID_VALUE), driver_present() ? "CUDA_ERROR_INVALID_VALUE" : "error 1");
}

// The last case: from here on the process has a libcuda.so.1, this one.
TEST_CASE("The stub that toolkits link against is no driver") {
  std::vector<std::string> folders = {"/usr/local/cuda"};
  for (const char* name : {"CUDA_PATH", "CUDA_HOME"})
    if (const char* value = std::getenv(name)) folders.emplace_back(value);
  for (const std::string& folder : folders) {
    const fs::path stub = fs::path(folder) / "lib64/stubs/libcuda.so";
    if (!fs::exists(stub)) continue;
    const std::string message = open_message({stub.string()});
    check_has(message, "is the stub that comes with a CUDA toolkit");
    check_has(message, stub.filename().string());
    return;
  }
  MESSAGE("there is no stub library on this machine");
}
