// Copies: the asynchronous copies into one block's shared memory, from global memory or of what a block of
// the cluster sends, and the barriers that count their bytes. A copy is made some time after it was started,
// and its bytes are nobody's until its barrier has been waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/shared_memory.hpp"

namespace jitsoftmax::host_test {

class Copies {
 public:
  explicit Copies(SharedMemory& shared) : shared_(shared) {}
  void reset();

  // What a thread does; what is wrong with it, as a clause.
  std::optional<std::string> init(const Moment& now, int barrier);
  std::optional<std::string> expect(const Moment& now, int barrier, int bytes);
  std::optional<std::string> start(const Moment& now, int to, const void* from, int bytes, int barrier);
  std::optional<std::string> send(const Moment& now, int to, const void* value, int bytes, int barrier);
  std::optional<std::string> may_wait(const Moment& now, int barrier);
  [[nodiscard]] bool complete(int barrier) const;
  void waited(const Moment& now, int barrier);

  // Why the thread may not touch these bytes.
  [[nodiscard]] std::optional<std::string> withhold(const Moment& now, int offset, int bytes) const;

  // Makes one of the copies under way.
  [[nodiscard]] std::size_t under_way() const { return under_way_.size(); }
  void land(std::size_t index);

  // The state of a barrier that somebody waits at.
  [[nodiscard]] std::string describe(int barrier) const;
  // A copy that no thread has waited for when the block ends.
  [[nodiscard]] std::optional<std::string> left_behind() const;

 private:
  struct Barrier {
    Moment initialized;
    bool expecting = false;
    int expected = 0;  // bytes
    int started = 0;
    int arrived = 0;
    std::vector<Moment> waited;  // the first wait of every thread
  };
  struct Copy {
    int to;
    int bytes;
    int barrier;
    const void* from;              // read when the copy is made,
    std::vector<std::byte> value;  // unless it was given
  };

  std::optional<std::string> begin(const Moment& now, const Copy& copy, int alignment);
  std::optional<std::string> refuse(const Moment& now, int barrier) const;

  SharedMemory& shared_;
  std::map<int, Barrier> barriers_;  // by their offset
  std::vector<Copy> started_;
  std::vector<Copy> under_way_;
};

}  // namespace jitsoftmax::host_test
