// Autotune: finds the fastest specialization for a problem on the GPU at hand, and keeps what it found.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <jitsoftmax/engine.hpp>
#include <optional>

#include "api/code.hpp"
#include "plan/tuned.hpp"
#include "tune/records.hpp"

namespace jitsoftmax {

// Which record is about this problem on this device.
[[nodiscard]] tune::RecordKey record_key(const Problem& problem, plan::RowsBucket bucket, CUdevice device);

// The winner of a record, its alignment left open, in the place of what `built_in` has for its rows; nothing
// where it has none that this library would make.
[[nodiscard]] std::optional<plan::Specialization> pick_of(tune::Record record, const tune::RecordKey& key,
                                                          const plan::Bundle& built_in);

// The picks of the records for a problem on this device.
[[nodiscard]] plan::Tuned recorded_picks(tune::Records& records, const Problem& problem, const plan::Bundle& built_in,
                                         CUdevice device);

// As Engine::autotune, for a problem that is checked and has columns, and at least one row. A context of
// the device is current.
[[nodiscard]] TuneReport autotune(Code& code, tune::Records& records, MaskedRows masked, const Problem& problem,
                                  std::int64_t rows, CUdevice device, const TuneOptions& options);

}  // namespace jitsoftmax
