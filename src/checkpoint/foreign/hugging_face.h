// Checks whether a checkpoint-N folder of Hugging Face's Trainer is complete. Thread-safe: no state.
#pragma once

#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::checkpoint {

/// Corrupt or invalid "<folder>: ..." if weights (all shards of their index), optimizer, scheduler or random
/// states are missing or truncated, or trainer_state.json, which is written last, is missing or of a
/// different step.
Status check_hugging_face(const Path& folder);

}  // namespace stoker::checkpoint
