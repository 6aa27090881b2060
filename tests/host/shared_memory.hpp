// SharedMemory: one block's shared memory, with what the hardware does not check: bounds, alignment
// and races.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel_templates/config.cuh"

namespace jitsoftmax::host_test {

// A thread at some point of its run: where it is and which barriers it has passed.
struct Moment {
  int thread = 0;                // of its block
  int rank = 0;                  // of its block in the cluster
  std::uint64_t interval = 0;    // between two barriers of its block; grows
  std::uint64_t arrived = 0;     // cluster barriers that it has arrived at,
  std::uint64_t waited = 0;      // and waited for
  std::uint64_t warp_syncs = 0;  // that its warp has passed

  [[nodiscard]] int warp() const { return thread / kernels::warp_size; }

  // Whether barriers order what was done then before what is done now. A cluster barrier does not: it
  // tells that a block has started, and with that of its copy barriers.
  [[nodiscard]] bool is_before(const Moment& now) const {
    return rank == now.rank &&
           (thread == now.thread || interval < now.interval || (warp() == now.warp() && warp_syncs < now.warp_syncs));
  }
  [[nodiscard]] bool is_announced_to(const Moment& now) const { return is_before(now) || arrived < now.waited; }
};

// "thread 5", for one of another block with that as well.
[[nodiscard]] std::string name_for(const Moment& reader, const Moment& named);

class SharedMemory {
 public:
  // Every block starts with bytes that are NaN in every element type. What was accessed before
  // `interval` is forgotten.
  void reset(int bytes, std::uint64_t interval);

  // What is wrong with the access, as a clause; nothing if it was made. A race is two threads that
  // touch a byte with no barrier of their block or warp in between, one of them writing: it is found whichever comes
  // first.
  std::optional<std::string> load(const Moment& now, void* to, int offset, int bytes, int alignment);
  std::optional<std::string> store(const Moment& now, int offset, const void* from, int bytes, int alignment);

  // The same of a store that somebody else makes, later and with `fill`: whoever orders that has to see to
  // it that nobody touches the bytes meanwhile.
  [[nodiscard]] std::optional<std::string> may_store(const Moment& now, int offset, int bytes, int alignment) const;
  void fill(int offset, const void* from, int bytes);

 private:
  struct Access {
    Moment when;
    bool made = false;
  };
  struct History {
    Access write;
    Access read;
    Access other_read;  // of another thread than `read`, if there was more than one
  };

  [[nodiscard]] bool races(const Access& earlier, const Moment& now) const {
    return earlier.made && earlier.when.interval >= since_ && !earlier.when.is_before(now);
  }
  std::optional<std::string> refuse(int offset, int bytes, int alignment) const;

  std::vector<std::byte> bytes_;
  std::vector<History> history_;  // of every byte
  std::uint64_t since_ = 0;
};

}  // namespace jitsoftmax::host_test
