// SharedMemory: one block's shared memory, with what the hardware does not check: bounds, alignment
// and races.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jitsoftmax::host_test {

class SharedMemory {
 public:
  // Every block starts with bytes that are NaN in every element type.
  void reset(int bytes);

  // A barrier: what was accessed before it is ordered before what is accessed after it.
  void barrier() { ++interval_; }

  // What is wrong with the access, as a clause; nothing if it was made. A race is two threads that
  // touch a byte between the same two barriers, one of them writing: it is found whichever comes
  // first.
  std::optional<std::string> load(int thread, void* to, int offset, int bytes, int alignment);
  std::optional<std::string> store(int thread, int offset, const void* from, int bytes, int alignment);

 private:
  struct History {
    std::uint64_t written = 0;  // interval
    std::uint64_t read = 0;
    int writer = 0;
    int reader = 0;
    int other_reader = 0;  // differs from `reader` if there was more than one
  };

  std::optional<std::string> refuse(int offset, int bytes, int alignment) const;

  std::vector<std::byte> bytes_;
  std::vector<History> history_;  // of every byte
  std::uint64_t interval_ = 0;
};

}  // namespace jitsoftmax::host_test
