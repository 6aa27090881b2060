#include "host/cluster.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "host/executor.hpp"

namespace jitsoftmax::host_test {
namespace {

using kernels::warp_size;

thread_local Cluster* running = nullptr;

}  // namespace

Cluster& Cluster::current() {
  if (running == nullptr) throw std::logic_error("a kernel was called outside of run_grid");
  return *running;
}

void Cluster::run(const plan::Geometry& geometry, long long index, const std::function<void()>& kernel,
                  std::uint64_t seed) {
  size_ = static_cast<int>(geometry.cluster * geometry.gang);
  block_threads_ = static_cast<int>(geometry.block);
  count_ = size_ * block_threads_;
  first_block_ = index * size_;
  grid_blocks_ = static_cast<long long>(geometry.grid);
  seed_ = seed;
  std::seed_seq mixed{seed & 0xffffffffu, seed >> 32, static_cast<std::uint64_t>(index)};
  order_.seed(mixed);
  const std::function<void()> threads_body = [this, &kernel] { body(kernel); };
  prepare(geometry, threads_body);

  Cluster* const outer = std::exchange(running, this);
  try {
    schedule();
  } catch (const ExecutionError&) {
    error_ = std::current_exception();
  }
  if (error_) abandon();
  running = outer;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Cluster::prepare(const plan::Geometry& geometry, const std::function<void()>& body) {
  error_ = nullptr;
  abandoned_ = false;
  arrived_ = 0;
  passed_ = 0;
  ++interval_;
  while (blocks_.size() < static_cast<std::size_t>(size_)) blocks_.emplace_back();
  for (int rank = 0; rank < size_; ++rank) {
    Block& starting = block(rank);
    starting.shared.reset(static_cast<int>(geometry.shared), interval_);
    starting.copies.reset();
    starting.interval = interval_;
    starting.at_barrier = 0;
    starting.exited = 0;
    const auto warps = static_cast<std::size_t>((block_threads_ + warp_size - 1) / warp_size);
    starting.at_shuffle.assign(warps, 0);
    starting.at_warp_barrier.assign(warps, 0);
    starting.warp_syncs.assign(warps, 0);
    starting.thread_copies.reset(block_threads_, static_cast<int>(geometry.shared));
  }
  if (threads_.size() < static_cast<std::size_t>(count_)) threads_.resize(static_cast<std::size_t>(count_));
  ready_.clear();
  for (int thread = 0; thread < count_; ++thread) {
    Thread& starting = at(thread);
    if (!starting.fiber) starting.fiber = std::make_unique<Fiber>();
    starting.fiber->start(body);
    starting.state = State::ready;
    starting.started = false;
    starting.predecessor_ended = false;
    starting.arrived = 0;
    starting.waited = 0;
    ready_.add(thread);
  }
}

void Cluster::schedule() {
  while (!error_) {
    // Copies land at any time, but always before everybody waits for them.
    if ((ready_.empty() || order_() % 16 == 0) && land_copies()) continue;
    if (ready_.empty()) break;
    resume(ready_.take(order_));
  }
  for (int thread = 0; thread < count_ && !error_; ++thread) {
    if (at(thread).state != State::exited) report_missing();
  }
}

// One copy of any block; whether there was one.
bool Cluster::land_copies() {
  std::size_t under_way = 0;
  for (int rank = 0; rank < size_; ++rank) under_way += block(rank).copies.under_way();
  if (under_way == 0) return false;
  std::size_t chosen = order_() % under_way;
  int rank = 0;
  while (chosen >= block(rank).copies.under_way()) chosen -= block(rank++).copies.under_way();
  Copies& copies = block(rank).copies;
  copies.land(chosen);
  wake_waiting_for_copies(rank);
  return true;
}

void Cluster::wake_waiting_for_copies(int rank) {
  const Copies& copies = block(rank).copies;
  for (int thread = rank * block_threads_; thread < (rank + 1) * block_threads_; ++thread) {
    if (at(thread).state == State::at_copy_barrier && copies.complete(at(thread).copy_barrier)) {
      wake(thread);
    }
  }
}

void Cluster::body(const std::function<void()>& kernel) {
  const int self = current_;
  at(self).started = true;
  try {
    kernel();
    leave();
  } catch (const Abandoned&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  at(self).state = State::exited;
}

void Cluster::leave() {
  if (at(current_).arrived != at(current_).waited) {
    fail(current_, "exits without having waited for the cluster barrier that it has arrived at");
  }
  check(own().thread_copies.left_behind(in_block(current_)));
  if (++own().exited == block_threads_) check(own().copies.left_behind());
}

void Cluster::resume(int thread) {
  current_ = thread;
  at(thread).fiber->resume();
}

void Cluster::wait(State state) {
  Thread& self = at(current_);
  self.state = state;
  self.fiber->suspend();
  if (abandoned_) throw Abandoned{};
}

void Cluster::wake(int thread) {
  const bool runs = at(thread).state == State::ready;  // the thread that wakes the others
  at(thread).state = State::ready;
  if (!runs) ready_.add(thread);
}

void Cluster::abandon() {
  abandoned_ = true;
  for (int thread = 0; thread < count_; ++thread) {
    if (at(thread).started && at(thread).state != State::exited) resume(thread);
  }
}

kernels::cpu::Place Cluster::place() const {
  const int rank = rank_of(current_);
  return {in_block(current_), first_block_ + rank, grid_blocks_, rank};
}

Moment Cluster::now() const {
  const int rank = rank_of(current_);
  const int thread = in_block(current_);
  return {thread,
          rank,
          block(rank).interval,
          at(current_).arrived,
          at(current_).waited,
          block(rank).warp_syncs[static_cast<std::size_t>(thread / warp_size)]};
}

void Cluster::sync_block() {
  Block& mine = own();
  if (++mine.at_barrier < block_threads_) return wait(State::at_barrier);
  mine.at_barrier = 0;
  mine.interval = ++interval_;
  const int first = rank_of(current_) * block_threads_;
  for (int thread = first; thread < first + block_threads_; ++thread) wake(thread);
}

std::uint64_t Cluster::shuffle_xor(std::uint64_t bits, int lane_mask) {
  const int self = current_;
  at(self).given = bits;
  at(self).lane_mask = lane_mask;
  const int warp = in_block(self) / warp_size;
  if (++own().at_shuffle[static_cast<std::size_t>(warp)] < warp_size) {
    wait(State::at_shuffle);
  } else {
    own().at_shuffle[static_cast<std::size_t>(warp)] = 0;
    finish_shuffle(self - in_block(self) % warp_size);
  }
  return at(self).received;
}

void Cluster::finish_shuffle(int first) {
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

void Cluster::sync_warp() {
  const auto warp = static_cast<std::size_t>(in_block(current_) / warp_size);
  if (++own().at_warp_barrier[warp] < warp_size) return wait(State::at_warp_barrier);
  own().at_warp_barrier[warp] = 0;
  ++own().warp_syncs[warp];
  const int first = current_ - in_block(current_) % warp_size;
  for (int lane = 0; lane < warp_size; ++lane) wake(first + lane);
}

void Cluster::start_copy(int to, const void* from, int bytes) {
  access_global(from, bytes);
  check(own().copies.withhold(now(), to, bytes));
  check(own().thread_copies.start(now(), to, from));
}

// Why the running thread may not touch these bytes, which a copy is to bring.
std::optional<std::string> Cluster::withhold(int offset, int bytes) const {
  const Block& mine = block(rank_of(current_));
  if (auto why = mine.copies.withhold(now(), offset, bytes)) return why;
  return mine.thread_copies.withhold(now(), offset, bytes);
}

void Cluster::shared_load(void* to, int offset, int bytes, int alignment) {
  check(withhold(offset, bytes));
  check(own().shared.load(now(), to, offset, bytes, alignment));
}

void Cluster::shared_store(int offset, const void* from, int bytes, int alignment) {
  check(withhold(offset, bytes));
  check(own().shared.store(now(), offset, from, bytes, alignment));
}

void Cluster::expect_predecessor_ended() const {
  if (!at(current_).predecessor_ended) {
    fail(current_, "accesses global memory without having waited for the kernel before, which may be running");
  }
}

void Cluster::access_global(const void* pointer, int bytes) const {
  expect_predecessor_ended();
  if (!kernels::is_aligned(pointer, bytes)) {
    fail(current_, "moves " + std::to_string(bytes) + " bytes in one access at an address that is not aligned to them");
  }
}

void Cluster::arrive() {
  Thread& self = at(current_);
  if (self.arrived != self.waited)
    fail(current_, "arrives at a cluster barrier without having waited for the last one");
  ++self.arrived;
  if (++arrived_ < count_) return;
  arrived_ = 0;
  ++passed_;
  for (int thread = 0; thread < count_; ++thread) {
    if (at(thread).state == State::at_cluster_barrier) wake(thread);
  }
}

void Cluster::wait_for_cluster() {
  Thread& self = at(current_);
  if (self.arrived == self.waited) fail(current_, "waits for a cluster barrier that it has not arrived at");
  if (passed_ < self.arrived) wait(State::at_cluster_barrier);
  self.waited = self.arrived;
}

void Cluster::send_to_block(int rank, int offset, const void* from, int bytes, int barrier) {
  const std::string target = "block " + std::to_string(rank) + " of the cluster";
  if (rank < 0 || rank >= size_) {
    fail(current_, "sends to " + target + ", which has " + std::to_string(size_));
  }
  if (rank != rank_of(current_) && at(current_).waited == 0) {
    fail(current_, "sends to " + target + " before the first cluster barrier: it may not have started");
  }
  if (block(rank).exited == block_threads_) fail(current_, "sends to " + target + ", which has exited");
  check(block(rank).copies.send(now(), offset, from, bytes, barrier));
}

void Cluster::copy_barrier_init(int offset) { check(own().copies.init(now(), offset)); }
void Cluster::copy_barrier_expect(int offset, int bytes) {
  check(own().copies.expect(now(), offset, bytes));
  wake_waiting_for_copies(rank_of(current_));
}
void Cluster::copy_to_shared(int to, const void* from, int bytes, int barrier) {
  expect_predecessor_ended();
  check(own().copies.start(now(), to, from, bytes, barrier));
}
void Cluster::copy_barrier_wait(int offset) {
  check(own().copies.may_wait(now(), offset));
  at(current_).copy_barrier = offset;
  if (!own().copies.complete(offset)) wait(State::at_copy_barrier);
  own().copies.waited(now(), offset);
}

// Copied by memcpy, which the address sanitizer looks at.
void Cluster::post(unsigned long long* to, unsigned long long word) {
  expect_predecessor_ended();
  std::memcpy(to, &word, sizeof(word));
  for (int thread = 0; thread < count_; ++thread) {
    if (at(thread).state == State::at_post) wake(thread);
  }
}
unsigned long long Cluster::await_post(const unsigned long long* from, unsigned turn) {
  expect_predecessor_ended();
  for (;;) {
    unsigned long long word = 0;
    std::memcpy(&word, from, sizeof(word));
    if (word >> 32 == turn) return word;
    wait(State::at_post);
  }
}

std::string Cluster::describe(int thread) const {
  const int local = in_block(thread);
  return "thread " + std::to_string(local) + " (warp " + std::to_string(local / warp_size) + ", lane " +
         std::to_string(local % warp_size) + ")";
}

std::string Cluster::describe_from(int here, int thread) const {
  const int rank = rank_of(thread);
  return (rank == rank_of(here) ? "" : "block " + std::to_string(first_block_ + rank) + "'s ") + describe(thread);
}

void Cluster::check(const std::optional<std::string>& why) const {
  if (why) fail(current_, *why);
}

void Cluster::fail(int thread, const std::string& what) const {
  throw ExecutionError("block " + std::to_string(first_block_ + rank_of(thread)) + " of " +
                       std::to_string(grid_blocks_) + ", " + describe(thread) + " " + what + "; seed " +
                       std::to_string(seed_));
}

std::string Cluster::where(int thread) const {
  switch (at(thread).state) {
    case State::at_barrier:
      return "waits at a barrier of the block";
    case State::at_shuffle:
      return "waits in a shuffle with lane mask " + std::to_string(at(thread).lane_mask);
    case State::at_warp_barrier:
      return "waits at a barrier of its warp";
    case State::at_cluster_barrier:
      return "waits for a cluster barrier";
    case State::at_copy_barrier:
      return "waits for bytes: " + block(rank_of(thread)).copies.describe(at(thread).copy_barrier);
    case State::at_post:
      return "waits for what another block of its gang is to post";
    default:
      return "has exited";
  }
}

// Nobody can go on: somebody waits for a thread that has gone elsewhere.
void Cluster::report_missing() const {
  int waiting = 0;
  while (at(waiting).state == State::exited) ++waiting;
  for (int thread = waiting; thread < count_; ++thread) {
    if (at(thread).state == State::at_copy_barrier) fail(thread, where(thread) + ", and no copy is under way");
    if (at(thread).state == State::at_post) fail(thread, where(thread) + ", and nobody does");
  }
  // Whom it waits for: its warp, its block or all.
  const State state = at(waiting).state;
  const int block_first = rank_of(waiting) * block_threads_;
  const int block_last = block_first + block_threads_;
  int first = state == State::at_cluster_barrier ? 0 : block_first;
  int last = state == State::at_cluster_barrier ? count_ : block_last;
  const bool of_warp = state == State::at_shuffle || state == State::at_warp_barrier;
  if (of_warp) {
    first = waiting - in_block(waiting) % warp_size;
    last = first + warp_size;
  }
  for (int other = first; other < last; ++other) {
    if (of_warp && other >= block_last) {
      fail(waiting,
           where(waiting) + ", but its warp is not whole: the block ends before lane " + std::to_string(other - first));
    }
    if (at(other).state != state) {
      fail(waiting, where(waiting) + ", but " + describe_from(waiting, other) + " " + where(other));
    }
  }
  fail(waiting, where(waiting) + " for ever");
}

}  // namespace jitsoftmax::host_test
