// Promise of tools/npy.hpp and npy_header.hpp: a .npy file is read or refused, whatever is in it, and a
// header that is accepted is written and read again as the same header.
#include "tools/npy.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/fuzz_target.hpp"
#include "tools/exit_code.hpp"
#include "tools/file_descriptor.hpp"

namespace {

using namespace jitsoftmax;  // NOLINT(google-build-using-namespace)
using tools::npy::Header;

void check(const Header& header) {
  fuzz::require(!header.shape.empty(), "an array has a dimension");
  for (const std::int64_t n : header.shape) fuzz::require(n >= 0, "no dimension is negative");
  const std::string bytes = tools::npy::header_bytes(header);
  fuzz::require(bytes.size() % 64 == 0, "the data are aligned");
  const Header again = tools::npy::parse_header(bytes.substr(bytes.find('{')));
  fuzz::require(again.dtype == header.dtype && again.shape == header.shape, "a header is read as it was written");
}

// Refusals are the only exceptions.
template <class Read>
void refused_or(Read read) {
  try {
    read();
  } catch (const tools::Failure& failure) {
    fuzz::require(failure.exit_code() == tools::exit_code::usage, "what is refused is the file's fault");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  refused_or([&] {
    const Header header = tools::npy::parse_header(bytes);
    check(header);
    (void)tools::npy::byte_count(header);
  });

  const tools::FileDescriptor file(::memfd_create("array.npy", MFD_CLOEXEC));
  fuzz::require(::write(file.get(), data, size) == static_cast<ssize_t>(size), "memory is there");
  refused_or([&] {
    const auto array = tools::npy::read("/proc/self/fd/" + std::to_string(file.get()));
    check(array.header);
    fuzz::require(array.bytes().size() == tools::npy::byte_count(array.header), "all data are read");
  });
  return 0;
}
