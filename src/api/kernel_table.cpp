#include "api/kernel_table.hpp"

#include <algorithm>

namespace jitsoftmax {
namespace {

// A generic kernel has an entry of its own as well, which is for any number of columns.
bool serves_any_length(const Problem& problem) noexcept { return problem.cols == 0; }

}  // namespace

KernelTable::Entry& KernelTable::entry(const Problem& problem, int device) {
  const std::lock_guard lock(writing_);
  if (Entry* present = find_in(*tables_.back(), problem, device)) return *present;
  if (2 * (entries_.size() + 1) > tables_.back()->slots.size()) grow(2 * tables_.back()->slots.size());
  entries_.push_back(std::make_unique<Entry>(problem, device));
  place(*tables_.back(), entries_.back().get());
  return *entries_.back();
}

std::shared_ptr<const Executable> KernelTable::exact(Entry& entry) {
  const std::lock_guard lock(writing_);
  if (entry.exact_owner_) entry.last_use_.store(clock_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return entry.exact_owner_;
}

void KernelTable::set_exact(Entry& entry, std::shared_ptr<const Executable> executable) {
  std::vector<std::shared_ptr<const Executable>> idle;  // unloaded when the lock is free again
  const std::lock_guard lock(writing_);
  if (!entry.exact_owner_ && !serves_any_length(entry.problem)) ++exact_kernels_;
  entry.exact_owner_ = std::move(executable);
  entry.last_use_.store(clock_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  entry.ready_.store(entry.exact_owner_.get(), std::memory_order_seq_cst);
  if (!has_limit()) return;
  retire_beyond_limit();
  idle = take_idle();
}

void KernelTable::set_generic(Entry& entry, std::shared_ptr<const Executable> executable) {
  const std::lock_guard lock(writing_);
  if (entry.generic_owner_) return;
  entry.generic_owner_ = std::move(executable);
  entry.generic_.store(entry.generic_owner_.get(), std::memory_order_release);
}

void KernelTable::serve_generic(Entry& entry) {
  const std::lock_guard lock(writing_);
  if (!entry.exact_owner_) entry.ready_.store(entry.generic_owner_.get(), std::memory_order_seq_cst);
}

void KernelTable::restart(Entry& entry) {
  const std::lock_guard lock(writing_);
  if (!entry.exact_owner_) forget_exact(entry);
}

void KernelTable::place(Table& table, Entry* entry) noexcept {
  const std::size_t mask = table.slots.size() - 1;
  std::size_t i = hash(entry->problem, entry->device);
  while (table.slots[i & mask].load(std::memory_order_relaxed) != nullptr) ++i;
  table.slots[i & mask].store(entry, std::memory_order_release);
}

void KernelTable::grow(std::size_t size) {
  tables_.push_back(std::make_unique<Table>(size));
  for (const auto& entry : entries_) place(*tables_.back(), entry.get());
  current_.store(tables_.back().get(), std::memory_order_release);
}

void KernelTable::retire_beyond_limit() {
  while (exact_kernels_ > limit_) {
    Entry* const oldest = least_recently_used();
    if (oldest == nullptr) return;  // all are held elsewhere
    retired_.push_back({oldest, std::move(oldest->exact_owner_)});
    forget_exact(*oldest);
    --exact_kernels_;
    evictions_.fetch_add(1, std::memory_order_relaxed);
  }
}

// Of those that may go. Nobody can come to hold one meanwhile: that takes the lock, or a holder to copy from.
KernelTable::Entry* KernelTable::least_recently_used() const {
  Entry* oldest = nullptr;
  for (const auto& entry : entries_) {
    const auto& executable = entry->exact_owner_;
    if (!executable || serves_any_length(entry->problem)) continue;
    if (executable.use_count() > 1 || executable->stays()) continue;
    const auto last_use = [](const Entry& e) { return e.last_use_.load(std::memory_order_relaxed); };
    if (oldest == nullptr || last_use(*entry) < last_use(*oldest)) oldest = entry.get();
  }
  return oldest;
}

void KernelTable::forget_exact(Entry& entry) noexcept {
  entry.uses.store(0, std::memory_order_relaxed);
  entry.ready_.store(nullptr, std::memory_order_seq_cst);
}

// A lease that begins after its count was seen at 0 finds `ready` without the retired kernel.
std::vector<std::shared_ptr<const Executable>> KernelTable::take_idle() {
  std::vector<std::shared_ptr<const Executable>> idle;
  const auto gone = std::remove_if(retired_.begin(), retired_.end(), [&](Retired& retired) {
    // Coming and going as a holder, to see all that the last one before has done.
    std::shared_ptr<const Executable>(retired.executable).reset();
    if (retired.entry->leases_.load(std::memory_order_seq_cst) != 0 || retired.executable->stays() ||
        !retired.executable->idle()) {
      return false;
    }
    idle.push_back(std::move(retired.executable));
    return true;
  });
  retired_.erase(gone, retired_.end());
  return idle;
}

}  // namespace jitsoftmax
