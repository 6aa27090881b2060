#include "host/shared_memory.hpp"

#include <cstring>

namespace jitsoftmax::host_test {
namespace {

std::string race(const char* what, int byte, const char* how, int other) {
  return std::string(what) + " byte " + std::to_string(byte) + " of shared memory, which thread " +
         std::to_string(other) + how + " with no barrier in between";
}

}  // namespace

void SharedMemory::reset(int bytes) {
  bytes_.assign(static_cast<std::size_t>(bytes), std::byte{0xff});
  history_.resize(bytes_.size());
  ++interval_;
}

std::optional<std::string> SharedMemory::refuse(int offset, int bytes, int alignment) const {
  const auto size = static_cast<int>(bytes_.size());
  if (offset < 0 || bytes > size || offset > size - bytes) {
    return "accesses bytes " + std::to_string(offset) + ".." + std::to_string(offset + bytes - 1) +
           " of shared memory, but the block has " + std::to_string(size);
  }
  if (offset % alignment != 0) {
    return "accesses shared memory at byte " + std::to_string(offset) + ", which is not a multiple of " +
           std::to_string(alignment);
  }
  return std::nullopt;
}

std::optional<std::string> SharedMemory::load(int thread, void* to, int offset, int bytes, int alignment) {
  if (auto why = refuse(offset, bytes, alignment)) return why;
  for (int byte = offset; byte < offset + bytes; ++byte) {
    History& seen = history_[static_cast<std::size_t>(byte)];
    if (seen.written == interval_ && seen.writer != thread) return race("reads", byte, " wrote", seen.writer);
    if (seen.read != interval_) {
      seen.read = interval_;
      seen.reader = seen.other_reader = thread;
    } else if (seen.reader != thread) {
      seen.other_reader = thread;
    }
  }
  std::memcpy(to, bytes_.data() + offset, static_cast<std::size_t>(bytes));
  return std::nullopt;
}

std::optional<std::string> SharedMemory::store(int thread, int offset, const void* from, int bytes, int alignment) {
  if (auto why = refuse(offset, bytes, alignment)) return why;
  for (int byte = offset; byte < offset + bytes; ++byte) {
    History& seen = history_[static_cast<std::size_t>(byte)];
    if (seen.written == interval_ && seen.writer != thread) return race("writes", byte, " wrote", seen.writer);
    if (seen.read == interval_ && seen.reader != thread) return race("writes", byte, " read", seen.reader);
    if (seen.read == interval_ && seen.other_reader != thread) return race("writes", byte, " read", seen.other_reader);
    seen.written = interval_;
    seen.writer = thread;
  }
  std::memcpy(bytes_.data() + offset, from, static_cast<std::size_t>(bytes));
  return std::nullopt;
}

}  // namespace jitsoftmax::host_test
