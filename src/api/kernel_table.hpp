// KernelTable: the kernels that an engine has ready. Readers take no lock and write nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <jitsoftmax/problem.hpp>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "api/executable.hpp"

namespace jitsoftmax {

// Open addressing over pointers to entries that never change. It only grows: an insertion that
// finds the table half full publishes one of twice the size, and the old ones stay for readers that
// are still in them (together they are smaller than the last one).
class KernelTable {
 public:
  struct Entry {
    Problem problem;
    int device;
    std::shared_ptr<const Executable> executable;
  };

  KernelTable() { grow(first_size); }

  static std::size_t hash(const Problem& problem, int device) noexcept {
    // Fibonacci hashing: neighbouring row lengths land far apart.
    auto mixed = static_cast<std::uint64_t>(problem.cols) << 16 | static_cast<std::uint64_t>(device & 0xff) << 8 |
                 static_cast<std::uint64_t>(problem.in) << 6 | static_cast<std::uint64_t>(problem.out) << 4 |
                 static_cast<std::uint64_t>(problem.op) << 2 | static_cast<std::uint64_t>(problem.layout);
    mixed *= 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(mixed >> 32);
  }

  // Null if there is none. The entry lives as long as the table.
  [[nodiscard]] const Entry* find(const Problem& problem, int device) const noexcept {
    return find_in(*current_.load(std::memory_order_acquire), problem, device);
  }

  // The entry that is there afterwards: an earlier one stays.
  const Entry* insert(const Problem& problem, int device, std::shared_ptr<const Executable> executable) {
    const std::lock_guard lock(writing_);
    if (const Entry* present = find_in(*tables_.back(), problem, device)) return present;
    if (2 * (entries_.size() + 1) > tables_.back()->slots.size()) grow(2 * tables_.back()->slots.size());
    entries_.push_back(std::make_unique<const Entry>(Entry{problem, device, std::move(executable)}));
    place(*tables_.back(), entries_.back().get());
    return entries_.back().get();
  }

 private:
  static constexpr std::size_t first_size = 64;  // a power of two, as every size

  struct Table {
    explicit Table(std::size_t size) : slots(size) {}
    std::vector<std::atomic<const Entry*>> slots;
  };

  static const Entry* find_in(const Table& table, const Problem& problem, int device) noexcept {
    const std::size_t mask = table.slots.size() - 1;
    for (std::size_t i = hash(problem, device);; ++i) {
      const Entry* entry = table.slots[i & mask].load(std::memory_order_acquire);
      if (entry == nullptr || (entry->problem == problem && entry->device == device)) return entry;
    }
  }

  static void place(Table& table, const Entry* entry) noexcept {
    const std::size_t mask = table.slots.size() - 1;
    std::size_t i = hash(entry->problem, entry->device);
    while (table.slots[i & mask].load(std::memory_order_relaxed) != nullptr) ++i;
    table.slots[i & mask].store(entry, std::memory_order_release);
  }

  void grow(std::size_t size) {
    tables_.push_back(std::make_unique<Table>(size));
    for (const auto& entry : entries_) place(*tables_.back(), entry.get());
    current_.store(tables_.back().get(), std::memory_order_release);
  }

  std::mutex writing_;
  std::vector<std::unique_ptr<const Entry>> entries_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<const Table*> current_{nullptr};
};

}  // namespace jitsoftmax
