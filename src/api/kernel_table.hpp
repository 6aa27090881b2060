// KernelTable: the kernels that an engine has ready. Readers take no lock, and write nothing but, in an
// engine with a limit, to the entry that they use.
//
// An entry, once made, stays where it is until the table goes. What changes is what it holds: the exact
// kernel, which comes when it is made and goes when it is evicted, and the generic one, which stays. A
// launch runs `ready`, one pointer that is published whole.
//
// Eviction: of the exact kernels beyond the limit the least recently used are retired, but never one that
// a Kernel outside holds or that cannot be told to be idle. A retired one is no longer found; it is let go
// when no launch is in it any more (Entry::leases), and what was launched has left the device
// (Executable::idle).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <jitsoftmax/problem.hpp>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "api/executable.hpp"

namespace jitsoftmax {

class KernelTable {
 public:
  static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

  class Entry {
   public:
    Entry(const Problem& of, int on) noexcept : problem(of), device(on) {}

    const Problem problem;
    const int device;

    // What launches run; null: nothing yet, or no longer. May be used while the entry holds it for good
    // (a table without a limit, a generic kernel) or by one who has a Lease taken before.
    [[nodiscard]] const Executable* ready() const noexcept { return ready_.load(std::memory_order_seq_cst); }

    // The kernel for any number of columns, where the entry has one; for good.
    [[nodiscard]] const Executable* generic() const noexcept { return generic_.load(std::memory_order_acquire); }

    // Launches of the generic kernel, as long as these are counted.
    std::atomic<std::int64_t> uses{0};

   private:
    friend class KernelTable;
    std::atomic<const Executable*> ready_{nullptr};
    std::atomic<const Executable*> generic_{nullptr};
    std::atomic<std::int64_t> leases_{0};
    std::atomic<std::uint64_t> last_use_{0};
    // Guarded by the table's lock.
    std::shared_ptr<const Executable> exact_owner_;
    std::shared_ptr<const Executable> generic_owner_;
  };

  // Keeps what `ready` gives while it lives, and makes the entry the one used last.
  class Lease {
   public:
    Lease(const KernelTable& table, Entry& entry) noexcept : entry_(entry) {
      entry_.leases_.fetch_add(1, std::memory_order_seq_cst);
      // Between two loads of kernels all that is used is equally recent, and only the first use writes.
      const std::uint64_t now = table.clock_.load(std::memory_order_relaxed);
      if (entry_.last_use_.load(std::memory_order_relaxed) != now)
        entry_.last_use_.store(now, std::memory_order_relaxed);
    }
    ~Lease() { entry_.leases_.fetch_sub(1, std::memory_order_seq_cst); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

   private:
    Entry& entry_;
  };

  // `limit`: exact kernels that stay.
  explicit KernelTable(std::size_t limit = no_limit) : limit_(limit) { grow(first_size); }

  [[nodiscard]] bool has_limit() const noexcept { return limit_ != no_limit; }

  static std::size_t hash(const Problem& problem, int device) noexcept {
    // Fibonacci hashing: neighbouring row lengths land far apart.
    auto mixed = static_cast<std::uint64_t>(problem.cols) << 16 | static_cast<std::uint64_t>(device & 0xff) << 8 |
                 static_cast<std::uint64_t>(problem.in) << 6 | static_cast<std::uint64_t>(problem.out) << 4 |
                 static_cast<std::uint64_t>(problem.op) << 2 | static_cast<std::uint64_t>(problem.layout);
    mixed *= 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(mixed >> 32);
  }

  // Null if there is none.
  [[nodiscard]] Entry* find(const Problem& problem, int device) const noexcept {
    return find_in(*current_.load(std::memory_order_acquire), problem, device);
  }

  // The entry, made where there is none.
  Entry& entry(const Problem& problem, int device);

  // The exact kernel; null if there is none.
  [[nodiscard]] std::shared_ptr<const Executable> exact(Entry& entry);

  // From here on launches run it. Evicts what is beyond the limit.
  void set_exact(Entry& entry, std::shared_ptr<const Executable> executable);

  // An earlier one stays. Launches do not run it yet.
  void set_generic(Entry& entry, std::shared_ptr<const Executable> executable);

  // From here on launches run the generic kernel, until there is an exact one. Their uses are not counted.
  void serve_generic(Entry& entry);

  // Undoes serve_generic: uses are counted again, from 0.
  void restart(Entry& entry);

  [[nodiscard]] std::uint64_t evictions() const noexcept { return evictions_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t first_size = 64;  // a power of two, as every size

  // Open addressing. A table only grows: an insertion that finds it half full publishes one of twice the
  // size, and the old ones stay for readers that are still in them (together they are smaller than the last).
  struct Table {
    explicit Table(std::size_t size) : slots(size) {}
    std::vector<std::atomic<Entry*>> slots;
  };
  struct Retired {
    const Entry* entry;
    std::shared_ptr<const Executable> executable;
  };

  static Entry* find_in(const Table& table, const Problem& problem, int device) noexcept {
    const std::size_t mask = table.slots.size() - 1;
    for (std::size_t i = hash(problem, device);; ++i) {
      Entry* entry = table.slots[i & mask].load(std::memory_order_acquire);
      if (entry == nullptr || (entry->problem == problem && entry->device == device)) return entry;
    }
  }

  static void place(Table& table, Entry* entry) noexcept;
  void grow(std::size_t size);
  // With the lock.
  void retire_beyond_limit();
  [[nodiscard]] Entry* least_recently_used() const;
  static void forget_exact(Entry& entry) noexcept;
  [[nodiscard]] std::vector<std::shared_ptr<const Executable>> take_idle();

  const std::size_t limit_;
  std::mutex writing_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<Retired> retired_;
  std::size_t exact_kernels_ = 0;
  std::atomic<const Table*> current_{nullptr};
  std::atomic<std::uint64_t> clock_{1};
  std::atomic<std::uint64_t> evictions_{0};
};

}  // namespace jitsoftmax
