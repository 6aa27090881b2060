#include "host/copies.hpp"

#include <algorithm>

#include "kernel_templates/device.cuh"

namespace jitsoftmax::host_test {
namespace {

constexpr int barrier_bytes = 8;
constexpr int copy_alignment = 16;

bool overlap(int a, int a_bytes, int b, int b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

std::string at(int barrier) { return "the barrier at byte " + std::to_string(barrier) + " of shared memory"; }

}  // namespace

void Copies::reset() {
  barriers_.clear();
  started_.clear();
  under_way_.clear();
}

std::optional<std::string> Copies::init(const Moment& now, int barrier) {
  if (barriers_.contains(barrier)) return "initializes " + at(barrier) + " again";
  if (auto why = withhold(now, barrier, barrier_bytes)) return why;
  if (auto why = shared_.may_store(now, barrier, barrier_bytes, barrier_bytes)) return why;
  barriers_[barrier].initialized = now;
  return std::nullopt;
}

std::optional<std::string> Copies::refuse(const Moment& now, int barrier) const {
  const auto found = barriers_.find(barrier);
  if (found == barriers_.end()) return "uses " + at(barrier) + ", which is not initialized";
  const Moment& initialized = found->second.initialized;
  if (initialized.is_announced_to(now)) return std::nullopt;
  return "uses " + at(barrier) + ", which " + name_for(now, initialized) +
         " initialized with no barrier of the block in between";
}

std::optional<std::string> Copies::expect(const Moment& now, int barrier, int bytes) {
  if (auto why = refuse(now, barrier)) return why;
  Barrier& counts = barriers_[barrier];
  if (counts.expecting) return "expects bytes at " + at(barrier) + " a second time";
  if (bytes < 0) return "expects " + std::to_string(bytes) + " bytes at " + at(barrier);
  counts.expecting = true;
  counts.expected = bytes;
  return std::nullopt;
}

std::optional<std::string> Copies::start(const Moment& now, int to, const void* from, int bytes, int barrier) {
  if (bytes <= 0 || bytes % copy_alignment != 0 || !kernels::is_aligned(from, copy_alignment)) {
    return "copies " + std::to_string(bytes) + " bytes: size and addresses are to be multiples of 16";
  }
  return begin(now, {.to = to, .bytes = bytes, .barrier = barrier, .from = from, .value = {}}, copy_alignment);
}

std::optional<std::string> Copies::send(const Moment& now, int to, const void* value, int bytes, int barrier) {
  const auto* first = static_cast<const std::byte*>(value);
  return begin(now, {.to = to, .bytes = bytes, .barrier = barrier, .from = nullptr, .value = {first, first + bytes}},
               bytes);
}

std::optional<std::string> Copies::begin(const Moment& now, const Copy& copy, int alignment) {
  if (auto why = refuse(now, copy.barrier)) return why;
  if (auto why = withhold(now, copy.to, copy.bytes)) return why;
  if (auto why = shared_.may_store(now, copy.to, copy.bytes, alignment)) return why;
  Barrier& counts = barriers_[copy.barrier];
  counts.started += copy.bytes;
  if (!counts.expecting || counts.started > counts.expected) {
    return "starts copies of " + std::to_string(counts.started) + " bytes, but " + describe(copy.barrier);
  }
  started_.push_back(copy);
  under_way_.push_back(copy);
  return std::nullopt;
}

std::optional<std::string> Copies::may_wait(const Moment& now, int barrier) { return refuse(now, barrier); }

bool Copies::complete(int barrier) const {
  const Barrier& counts = barriers_.at(barrier);
  return counts.expecting && counts.arrived == counts.expected;
}

void Copies::waited(const Moment& now, int barrier) { barriers_.at(barrier).waited.push_back(now); }

std::optional<std::string> Copies::withhold(const Moment& now, int offset, int bytes) const {
  for (const auto& [barrier, counts] : barriers_) {
    if (overlap(offset, bytes, barrier, barrier_bytes)) return "touches the bytes of " + at(barrier);
  }
  for (const Copy& copy : started_) {
    if (!overlap(offset, bytes, copy.to, copy.bytes)) continue;
    const auto& waits = barriers_.at(copy.barrier).waited;
    if (std::any_of(waits.begin(), waits.end(), [&](const Moment& wait) { return wait.is_before(now); })) continue;
    return "touches byte " + std::to_string(std::max(offset, copy.to)) +
           " of shared memory, which an asynchronous copy brings, without having waited at " + at(copy.barrier);
  }
  return std::nullopt;
}

void Copies::land(std::size_t index) {
  std::swap(under_way_[index], under_way_.back());
  const Copy copy = under_way_.back();
  under_way_.pop_back();
  shared_.fill(copy.to, copy.value.empty() ? copy.from : copy.value.data(), copy.bytes);
  barriers_.at(copy.barrier).arrived += copy.bytes;
}

std::string Copies::describe(int barrier) const {
  const Barrier& counts = barriers_.at(barrier);
  if (!counts.expecting) return at(barrier) + " was told to expect none";
  return at(barrier) + " expects " + std::to_string(counts.expected) + " and " + std::to_string(counts.arrived) +
         " have arrived";
}

std::optional<std::string> Copies::left_behind() const {
  for (const auto& [barrier, counts] : barriers_) {
    if (counts.expecting && counts.waited.empty()) return "ends its block, but nobody has waited at " + at(barrier);
  }
  return std::nullopt;
}

}  // namespace jitsoftmax::host_test
