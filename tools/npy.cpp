#include "npy.hpp"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "exit_code.hpp"
#include "file_descriptor.hpp"
#include "interrupt.hpp"

namespace jitsoftmax::tools::npy {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read without a swap");

// NumPy itself refuses to read more than 10000 bytes of header.
constexpr std::size_t header_limit = std::size_t{1} << 20;

[[noreturn]] void fail(const std::string& message) { throw Failure(exit_code::usage, message); }

int open_for_reading(const std::string& path) {
  while (true) {
    if (const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC); descriptor >= 0) return descriptor;
    if (errno != EINTR) fail(fmt::format("cannot be opened: {}", std::generic_category().message(errno)));
    stop_if_interrupted();  // a pipe that nobody writes to
  }
}

// Fills `bytes` as far as the file goes; returns how many were there.
std::size_t read_up_to(const FileDescriptor& file, std::span<std::byte> bytes) {
  constexpr std::size_t block = std::size_t{16} << 20;  // so that Ctrl-C is heard
  std::size_t done = 0;
  while (done < bytes.size()) {
    stop_if_interrupted();
    const ssize_t got = ::read(file.get(), bytes.data() + done, std::min(bytes.size() - done, block));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(fmt::format("cannot be read: {}", std::generic_category().message(errno)));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::string read_text(const FileDescriptor& file, std::size_t size, const char* part) {
  std::string text(size, '\0');
  if (read_up_to(file, std::as_writable_bytes(std::span(text))) != size) {
    fail(fmt::format("the file ends within its {}: it is truncated; save the array again", part));
  }
  return text;
}

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

Header read_header(const FileDescriptor& file, std::size_t& header_end) {
  constexpr std::string_view magic = "\x93NUMPY";
  const std::string start = read_text(file, magic.size() + 2, "magic");
  if (start.starts_with("PK")) {
    fail("this is an .npz archive: save one of its arrays with numpy.save");
  }
  if (!start.starts_with(magic)) fail("this is not a .npy file (no NumPy magic): make one with numpy.save");
  const int major = static_cast<unsigned char>(start[6]);
  const int minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    fail(fmt::format("version {}.{} of the .npy format is not 1.0, 2.0 or 3.0: save the array again", major, minor));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t length = little_endian(read_text(file, length_bytes, "header"));
  if (length > header_limit) {
    fail(fmt::format("a header of {} bytes is not plausible: save the array again", length));
  }
  header_end = start.size() + length_bytes + length;
  return parse_header(read_text(file, length, "header"));
}

[[noreturn]] void fail_truncated(const Header& header, std::size_t found) {
  fail(fmt::format("shape {} of {} needs {} bytes of data and the file has {}: it is truncated; save the array again",
                   describe(header.shape), numpy_name(header.dtype), byte_count(header), found));
}

Array read_array(const FileDescriptor& file) {
  std::size_t header_end = 0;
  const Header header = read_header(file, header_end);
  const std::size_t needed = byte_count(header);

  // A regular file tells before anything is allocated.
  struct stat info = {};
  if (::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    const auto size = static_cast<std::size_t>(info.st_size);
    const std::size_t found = size - std::min(size, header_end);
    if (found < needed) fail_truncated(header, found);
  }
  Array array(header);
  if (const std::size_t found = read_up_to(file, array.bytes()); found < needed) fail_truncated(header, found);
  std::byte more{};
  if (read_up_to(file, {&more, 1}) != 0) {
    fail(fmt::format("the file goes on after the {} bytes of data that shape {} of {} has: save one array a file",
                     needed, describe(header.shape), numpy_name(header.dtype)));
  }
  return array;
}

}  // namespace

Array::Array(Header of) : header(std::move(of)), size_(byte_count(header)) {
  data = std::make_unique_for_overwrite<std::byte[]>(size_);
}

Array read(const std::string& path) {
  try {
    const FileDescriptor file(open_for_reading(path));
    return read_array(file);
  } catch (const Failure& failure) {
    throw Failure(failure.exit_code(), fmt::format("'{}': {}", path, failure.what()));
  }
}

void write(const OutputFile& file, const Array& array) {
  const std::string header = header_bytes(array.header);
  file.write({std::as_bytes(std::span(header)), array.bytes()});
}

}  // namespace jitsoftmax::tools::npy
