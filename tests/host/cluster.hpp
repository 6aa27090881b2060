// Cluster: runs the threads of one cluster of blocks after another, switching where they wait for each
// other. A block of a kernel without clusters is a cluster of one, and the blocks of a gang are one as well.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "host/copies.hpp"
#include "host/fiber.hpp"
#include "host/ready_threads.hpp"
#include "host/shared_memory.hpp"
#include "host/thread_copies.hpp"
#include "kernel_templates/device.cuh"
#include "plan/launch.hpp"

namespace jitsoftmax::host_test {

class Cluster {
 public:
  // Runs every thread of cluster `index` to its end. Throws what a thread threw.
  void run(const plan::Geometry& geometry, long long index, const std::function<void()>& kernel, std::uint64_t seed);

  // The cluster whose thread is running on this thread of the host.
  static Cluster& current();

  // What the running thread asks for.
  [[nodiscard]] kernels::cpu::Place place() const;
  void sync_block();
  std::uint64_t shuffle_xor(std::uint64_t bits, int lane_mask);
  void shared_load(void* to, int offset, int bytes, int alignment);
  void shared_store(int offset, const void* from, int bytes, int alignment);
  void wait_for_predecessor() { at(current_).predecessor_ended = true; }
  void access_global(const void* pointer, int bytes) const;
  void arrive();
  void wait_for_cluster();
  void send_to_block(int rank, int offset, const void* from, int bytes, int barrier);
  void copy_barrier_init(int offset);
  void copy_barrier_expect(int offset, int bytes);
  void copy_barrier_wait(int offset);
  void post(unsigned long long* to, unsigned long long word);
  unsigned long long await_post(const unsigned long long* from, unsigned turn);
  void copy_to_shared(int to, const void* from, int bytes, int barrier);
  void sync_warp();
  void start_copy(int to, const void* from, int bytes);
  void close_copies() { own().thread_copies.close(in_block(current_)); }
  void wait_for_copies(int newest) { check(own().thread_copies.wait(now(), newest)); }

 private:
  enum class State {
    ready,
    at_barrier,
    at_shuffle,
    at_warp_barrier,
    at_cluster_barrier,
    at_copy_barrier,
    at_post,
    exited
  };
  struct Thread {  // numbered through the cluster
    std::unique_ptr<Fiber> fiber;
    State state = State::exited;
    bool started = false;
    bool predecessor_ended = false;  // for all that it knows
    int lane_mask = 0;
    std::uint64_t given = 0;
    std::uint64_t received = 0;
    std::uint64_t arrived = 0;  // at cluster barriers
    std::uint64_t waited = 0;   // for them
    int copy_barrier = 0;       // that it waits at
  };
  struct Block {
    SharedMemory shared;
    Copies copies{shared};
    ThreadCopies thread_copies{shared};
    std::uint64_t interval = 0;
    int at_barrier = 0;
    int exited = 0;
    // Of each warp:
    std::vector<int> at_shuffle;       // threads
    std::vector<int> at_warp_barrier;  // threads
    std::vector<std::uint64_t> warp_syncs;
  };
  struct Abandoned {};  // unwinds the threads of a cluster that has failed

  void prepare(const plan::Geometry& geometry, const std::function<void()>& body);
  void schedule();
  bool land_copies();
  void wake_waiting_for_copies(int rank);
  void body(const std::function<void()>& kernel);
  void leave();
  void resume(int thread);
  void wait(State state);
  void wake(int thread);
  void finish_shuffle(int first);
  void abandon();
  [[nodiscard]] std::optional<std::string> withhold(int offset, int bytes) const;
  void check(const std::optional<std::string>& why) const;
  void expect_predecessor_ended() const;
  [[noreturn]] void fail(int thread, const std::string& what) const;
  [[noreturn]] void report_missing() const;
  [[nodiscard]] std::string where(int thread) const;
  [[nodiscard]] std::string describe(int thread) const;
  [[nodiscard]] std::string describe_from(int here, int thread) const;
  [[nodiscard]] Moment now() const;
  [[nodiscard]] int rank_of(int thread) const { return thread / block_threads_; }
  [[nodiscard]] int in_block(int thread) const { return thread % block_threads_; }
  Thread& at(int thread) { return threads_[static_cast<std::size_t>(thread)]; }
  [[nodiscard]] const Thread& at(int thread) const { return threads_[static_cast<std::size_t>(thread)]; }
  Block& block(int rank) { return blocks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Block& block(int rank) const { return blocks_[static_cast<std::size_t>(rank)]; }
  Block& own() { return block(rank_of(current_)); }

  std::vector<Thread> threads_;  // as many as the largest cluster so far had
  std::deque<Block> blocks_;     // which do not move
  ReadyThreads ready_;
  std::minstd_rand order_;
  std::exception_ptr error_;
  bool abandoned_ = false;
  int block_threads_ = 1;
  int size_ = 1;              // blocks
  int count_ = 0;             // threads
  int current_ = 0;           // thread
  int arrived_ = 0;           // at the next cluster barrier
  std::uint64_t passed_ = 0;  // cluster barriers
  std::uint64_t interval_ = 0;
  long long first_block_ = 0;
  long long grid_blocks_ = 0;
  std::uint64_t seed_ = 0;
};

}  // namespace jitsoftmax::host_test
