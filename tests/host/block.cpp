#include "host/block.hpp"

#include <numeric>
#include <utility>

#include "host/executor.hpp"

namespace jitsoftmax::host_test {
namespace {

using kernels::warp_size;

thread_local Block* running = nullptr;

}  // namespace

Block& Block::current() {
  if (running == nullptr) throw std::logic_error("a kernel was called outside of run_grid");
  return *running;
}

void Block::run(const plan::Geometry& geometry, long long index, const std::function<void()>& kernel,
                std::uint64_t seed) {
  count_ = static_cast<int>(geometry.block);
  index_ = index;
  blocks_ = static_cast<long long>(geometry.grid_x) * geometry.grid_y;
  seed_ = seed;
  std::seed_seq mixed{seed & 0xffffffffu, seed >> 32, static_cast<std::uint64_t>(index)};
  order_.seed(mixed);
  shared_.reset(static_cast<int>(geometry.shared));
  at_barrier_ = 0;
  arrived_.assign(static_cast<std::size_t>((count_ + warp_size - 1) / warp_size), 0);
  error_ = nullptr;
  abandoned_ = false;

  if (threads_.size() < geometry.block) threads_.resize(geometry.block);
  ready_.resize(geometry.block);
  std::iota(ready_.begin(), ready_.end(), 0);
  const std::function<void()> threads_body = [this, &kernel] { body(kernel); };
  for (int thread = 0; thread < count_; ++thread) {
    Thread& starting = at(thread);
    if (!starting.fiber) starting.fiber = std::make_unique<Fiber>();
    starting.fiber->start(threads_body);
    starting.state = State::ready;
    starting.started = false;
  }

  Block* const outer = std::exchange(running, this);
  while (!ready_.empty() && !error_) {
    std::swap(ready_[order_() % ready_.size()], ready_.back());
    const int thread = ready_.back();
    ready_.pop_back();
    resume(thread);
  }
  try {
    for (int thread = 0; thread < count_ && !error_; ++thread) {
      if (at(thread).state != State::exited) report_missing();
    }
  } catch (const ExecutionError&) {
    error_ = std::current_exception();
  }
  if (error_) abandon();
  running = outer;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Block::body(const std::function<void()>& kernel) {
  const int self = current_;
  at(self).started = true;
  try {
    kernel();
  } catch (const Abandoned&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  at(self).state = State::exited;
}

void Block::resume(int thread) {
  current_ = thread;
  at(thread).fiber->resume();
}

void Block::wait(State state) {
  Thread& self = at(current_);
  self.state = state;
  self.fiber->suspend();
  if (abandoned_) throw Abandoned{};
}

void Block::wake(int thread) {
  at(thread).state = State::ready;
  if (thread != current_) ready_.push_back(thread);
}

void Block::abandon() {
  abandoned_ = true;
  for (int thread = 0; thread < count_; ++thread) {
    if (at(thread).started && at(thread).state != State::exited) resume(thread);
  }
}

void Block::sync() {
  if (++at_barrier_ < count_) return wait(State::at_barrier);
  at_barrier_ = 0;
  shared_.barrier();
  for (int thread = 0; thread < count_; ++thread) wake(thread);
}

std::uint64_t Block::shuffle_xor(std::uint64_t bits, int lane_mask) {
  const int self = current_;
  at(self).given = bits;
  at(self).lane_mask = lane_mask;
  const int warp = self / warp_size;
  if (++arrived_[static_cast<std::size_t>(warp)] < warp_size) {
    wait(State::at_shuffle);
  } else {
    finish_shuffle(warp);
  }
  return at(self).received;
}

void Block::finish_shuffle(int warp) {
  arrived_[static_cast<std::size_t>(warp)] = 0;
  const int first = warp * warp_size;
  const int mask = at(first).lane_mask;
  if (mask < 1 || mask >= warp_size) fail(first, "shuffles with lane mask " + std::to_string(mask));
  for (int lane = 0; lane < warp_size; ++lane) {
    Thread& thread = at(first + lane);
    if (thread.lane_mask != mask) {
      fail(first + lane, "shuffles with lane mask " + std::to_string(thread.lane_mask) + ", but " + describe(first) +
                             " of its warp with " + std::to_string(mask));
    }
    thread.received = at(first + (lane ^ mask)).given;
    wake(first + lane);
  }
}

void Block::shared_load(void* to, int offset, int bytes, int alignment) {
  if (const auto why = shared_.load(current_, to, offset, bytes, alignment)) fail(current_, *why);
}

void Block::shared_store(int offset, const void* from, int bytes, int alignment) {
  if (const auto why = shared_.store(current_, offset, from, bytes, alignment)) fail(current_, *why);
}

void Block::require_aligned(const void* pointer, int bytes) const {
  if (!kernels::is_aligned(pointer, bytes)) {
    fail(current_, "moves " + std::to_string(bytes) + " bytes in one access at an address that is not aligned to them");
  }
}

std::string Block::describe(int thread) const {
  return "thread " + std::to_string(thread) + " (warp " + std::to_string(thread / warp_size) + ", lane " +
         std::to_string(thread % warp_size) + ")";
}

void Block::fail(int thread, const std::string& what) const {
  throw ExecutionError("block " + std::to_string(index_) + " of " + std::to_string(blocks_) + ", " + describe(thread) +
                       " " + what + "; seed " + std::to_string(seed_));
}

// Nobody can go on: somebody waits for a thread that has gone elsewhere.
void Block::report_missing() const {
  const auto where = [this](int thread) {
    switch (at(thread).state) {
      case State::at_barrier:
        return std::string("waits at a barrier of the block");
      case State::at_shuffle:
        return "waits in a shuffle with lane mask " + std::to_string(at(thread).lane_mask);
      default:
        return std::string("has exited");
    }
  };
  int waiting = 0;
  while (at(waiting).state == State::exited) ++waiting;
  const bool shuffle = at(waiting).state == State::at_shuffle;
  const int first = shuffle ? waiting / warp_size * warp_size : 0;
  const int last = shuffle ? first + warp_size : count_;
  for (int other = first; other < last; ++other) {
    if (other >= count_)
      fail(waiting, where(waiting) + ", but its warp is not whole: the block ends before " + describe(other));
    if (at(other).state != at(waiting).state)
      fail(waiting, where(waiting) + ", but " + describe(other) + " " + where(other));
  }
  fail(waiting, where(waiting) + " for ever");
}

}  // namespace jitsoftmax::host_test

namespace jitsoftmax::kernels::cpu {

using host_test::Block;

Place place() { return Block::current().place(); }
void sync_block() { Block::current().sync(); }
unsigned long long shuffle_xor(unsigned long long bits, int lane_mask) {
  return Block::current().shuffle_xor(bits, lane_mask);
}
void shared_load(void* to, int offset, int bytes, int alignment) {
  Block::current().shared_load(to, offset, bytes, alignment);
}
void shared_store(int offset, const void* from, int bytes, int alignment) {
  Block::current().shared_store(offset, from, bytes, alignment);
}
void require_aligned(const void* pointer, int bytes) { Block::current().require_aligned(pointer, bytes); }

}  // namespace jitsoftmax::kernels::cpu
