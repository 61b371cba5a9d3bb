// The last values of a run in a few words, for tables of runs and ranks. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "observe/progress.h"

namespace stoker::report {

/// "epoch 3/90 step 118", "step 118" of a program that logs metrics; "-" without steps. `epochs`: planned.
std::string progress_text(const observe::RunProgress& progress, const std::optional<std::uint32_t>& epochs);
/// "top-1 71.3 %", or "train/loss 0.532" of a program that logs metrics; "" without either.
std::string progress_note(const observe::RunProgress& progress);
/// "loss 0.532 at step 120 (0.510 to 0.550 on 4 ranks)".
std::string metric_line(const record::LastValue& value);

}  // namespace stoker::report
