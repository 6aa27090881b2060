// ThreadCopies: the asynchronous copies into one block's shared memory that the thread which starts them waits for
// itself, in groups. Nobody may touch their bytes meanwhile; thereafter they are what that thread has written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/shared_memory.hpp"
#include "kernel_templates/config.cuh"

namespace jitsoftmax::host_test {

class ThreadCopies {
 public:
  explicit ThreadCopies(SharedMemory& shared) : shared_(shared) {}
  void reset(int threads, int shared_bytes);

  // What a thread does; what is wrong with it, as a clause.
  std::optional<std::string> start(const Moment& now, int to, const void* from);
  void close(int thread) { ++of(thread).closed; }
  // A copy is made no sooner than its thread has to wait for it.
  std::optional<std::string> wait(const Moment& now, int newest);

  // Why the thread may not touch these bytes.
  [[nodiscard]] std::optional<std::string> withhold(const Moment& now, int offset, int bytes) const;

  // Copies that a thread has not waited for when it ends.
  [[nodiscard]] std::optional<std::string> left_behind(int thread) const;

 private:
  struct Copy {
    int to;
    const void* from;
    int group;
  };
  struct OfThread {
    int closed = 0;  // groups
    std::vector<Copy> under_way;
  };
  OfThread& of(int thread) { return threads_[static_cast<std::size_t>(thread)]; }

  SharedMemory& shared_;
  std::vector<OfThread> threads_;
  std::vector<int> brought_by_;  // of as many bytes as a copy has: the thread whose copy is under way, or nobody
};

}  // namespace jitsoftmax::host_test
