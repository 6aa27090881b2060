#include "tune/fit.hpp"

#include <cstdint>

#include "plan/occupancy.hpp"

namespace jitsoftmax::tune {
namespace {

constexpr int most_registers = 255;     // of a thread
constexpr int least_beside_a_row = 16;  // addresses, counters, maximum and sum: no kernel has taken fewer

int threads_of(const plan::Specialization& s) noexcept { return s.config.threads * s.config.rows; }

std::string too_many_registers(int a_thread, const plan::Specialization& s, const DeviceLimits& limits) {
  const int rounded = (a_thread + plan::register_step - 1) / plan::register_step * plan::register_step;
  const int block = rounded * threads_of(s);
  if (block <= limits.registers) return {};
  return "needs " + std::to_string(block) + " registers a block, of " + std::to_string(limits.registers);
}

std::string too_much_shared(std::int64_t bytes, const DeviceLimits& limits) {
  if (bytes <= limits.shared_bytes) return {};
  return "needs " + std::to_string(bytes) + " bytes of shared memory a block, of " +
         std::to_string(limits.shared_bytes);
}

}  // namespace

std::string unfit(const plan::Specialization& s, const DeviceLimits& limits) {
  if (threads_of(s) > limits.threads)
    return "needs " + std::to_string(threads_of(s)) + " threads a block, of " + std::to_string(limits.threads);
  if (std::string reason = too_much_shared(s.config.shared, limits); !reason.empty()) return reason;
  if (s.family != plan::Family::registers && s.family != plan::Family::strided_registers) return {};
  const int element_bytes = s.config.packed ? size_of(s.in) : plan::accumulator_bytes(s.in);
  const int registers = s.config.elements * element_bytes / 4 + least_beside_a_row;
  if (registers > most_registers) return "needs " + std::to_string(registers) + " registers a thread or more, of 255";
  return too_many_registers(registers, s, limits);
}

std::string unfit(const plan::Specialization& s, const jit::Resources& used, const DeviceLimits& limits) {
  if (used.stack_bytes != 0 || used.spill_bytes != 0) {
    return "uses local memory: " + std::to_string(used.stack_bytes) + " bytes of stack, " +
           std::to_string(used.spill_bytes) + " spilled";
  }
  if (std::string reason = too_much_shared(std::int64_t{s.config.shared} + used.shared_bytes, limits); !reason.empty())
    return reason;
  return too_many_registers(static_cast<int>(used.registers), s, limits);
}

}  // namespace jitsoftmax::tune
