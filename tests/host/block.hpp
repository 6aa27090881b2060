// Block: runs the threads of one block after another, switching where they wait for each other.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "host/fiber.hpp"
#include "host/shared_memory.hpp"
#include "kernel_templates/device.cuh"
#include "plan/launch.hpp"

namespace jitsoftmax::host_test {

class Block {
 public:
  // Runs every thread of block `index` to its end. Throws what a thread threw.
  void run(const plan::Geometry& geometry, long long index, const std::function<void()>& kernel, std::uint64_t seed);

  // The block whose thread is running on this thread of the host.
  static Block& current();

  // What the running thread asks for.
  [[nodiscard]] kernels::cpu::Place place() const { return {current_, index_, blocks_}; }
  void sync();
  std::uint64_t shuffle_xor(std::uint64_t bits, int lane_mask);
  void shared_load(void* to, int offset, int bytes, int alignment);
  void shared_store(int offset, const void* from, int bytes, int alignment);
  void require_aligned(const void* pointer, int bytes) const;

 private:
  enum class State { ready, at_barrier, at_shuffle, exited };
  struct Thread {
    std::unique_ptr<Fiber> fiber;
    State state = State::exited;
    bool started = false;
    int lane_mask = 0;
    std::uint64_t given = 0;
    std::uint64_t received = 0;
  };
  struct Abandoned {};  // unwinds the threads of a block that has failed

  void body(const std::function<void()>& kernel);
  void resume(int thread);
  void wait(State state);
  void wake(int thread);
  void finish_shuffle(int warp);
  void abandon();
  [[noreturn]] void fail(int thread, const std::string& what) const;
  [[noreturn]] void report_missing() const;
  [[nodiscard]] std::string describe(int thread) const;
  Thread& at(int thread) { return threads_[static_cast<std::size_t>(thread)]; }
  [[nodiscard]] const Thread& at(int thread) const { return threads_[static_cast<std::size_t>(thread)]; }

  std::vector<Thread> threads_;  // as many as the largest block so far had
  std::vector<int> ready_;
  std::vector<int> arrived_;  // at the current shuffle, of every warp
  SharedMemory shared_;
  std::mt19937 order_;
  std::exception_ptr error_;
  bool abandoned_ = false;
  int count_ = 0;  // threads of this block
  int at_barrier_ = 0;
  int current_ = 0;
  long long index_ = 0;
  long long blocks_ = 0;
  std::uint64_t seed_ = 0;
};

}  // namespace jitsoftmax::host_test
