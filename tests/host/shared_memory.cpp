#include "host/shared_memory.hpp"

#include <cstring>

namespace jitsoftmax::host_test {
namespace {

std::string race(const char* what, int byte, const char* how, const Moment& now, const Moment& other) {
  return std::string(what) + " byte " + std::to_string(byte) + " of shared memory, which " + name_for(now, other) +
         how + " with no barrier in between";
}

}  // namespace

std::string name_for(const Moment& reader, const Moment& named) {
  std::string name = "thread " + std::to_string(named.thread);
  if (named.rank != reader.rank) name += " of block " + std::to_string(named.rank) + " of the cluster";
  return name;
}

void SharedMemory::reset(int bytes, std::uint64_t interval) {
  bytes_.assign(static_cast<std::size_t>(bytes), std::byte{0xff});
  history_.resize(bytes_.size());
  since_ = interval;
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

std::optional<std::string> SharedMemory::load(const Moment& now, void* to, int offset, int bytes, int alignment) {
  if (auto why = refuse(offset, bytes, alignment)) return why;
  for (int byte = offset; byte < offset + bytes; ++byte) {
    History& seen = history_[static_cast<std::size_t>(byte)];
    if (races(seen.write, now)) return race("reads", byte, " wrote", now, seen.write.when);
    if (races(seen.read, now)) {
      seen.other_read = {now, true};
    } else {
      seen.read = {now, true};
    }
  }
  std::memcpy(to, bytes_.data() + offset, static_cast<std::size_t>(bytes));
  return std::nullopt;
}

std::optional<std::string> SharedMemory::store(const Moment& now, int offset, const void* from, int bytes,
                                               int alignment) {
  if (auto why = may_store(now, offset, bytes, alignment)) return why;
  for (int byte = offset; byte < offset + bytes; ++byte) history_[static_cast<std::size_t>(byte)].write = {now, true};
  fill(offset, from, bytes);
  return std::nullopt;
}

std::optional<std::string> SharedMemory::may_store(const Moment& now, int offset, int bytes, int alignment) const {
  if (auto why = refuse(offset, bytes, alignment)) return why;
  for (int byte = offset; byte < offset + bytes; ++byte) {
    const History& seen = history_[static_cast<std::size_t>(byte)];
    if (races(seen.write, now)) return race("writes", byte, " wrote", now, seen.write.when);
    for (const Access* read : {&seen.read, &seen.other_read}) {
      if (races(*read, now)) return race("writes", byte, " read", now, read->when);
    }
  }
  return std::nullopt;
}

void SharedMemory::fill(int offset, const void* from, int bytes) {
  std::memcpy(bytes_.data() + offset, from, static_cast<std::size_t>(bytes));
}

}  // namespace jitsoftmax::host_test
