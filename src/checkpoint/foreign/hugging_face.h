// Whether a checkpoint-N folder of Hugging Face's Trainer is complete. Thread-safe: no state.
#pragma once

#include "base/status.h"
#include "base/text.h"

namespace stoker::checkpoint {

/// Corrupt or invalid "<folder>: ..." naming the file when weights (all shards of their index), optimizer,
/// scheduler or random states are missing or cut off, or when trainer_state.json, which is written last, is
/// not there or is the one of another step.
Status check_hugging_face(const Path& folder);

}  // namespace stoker::checkpoint
