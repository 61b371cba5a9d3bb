// Durations of collectives from flight recorders: the latest ones of each rank. Thread-safe: no state.
#pragma once

#include "profile/profile.h"
#include "record/run_folder.h"

namespace stoker::profile {

/// Adds the collectives that ended, of the trainer's recorders and of the dumps of torch's recorder.
/// Unreadable files are noted.
void add_flight_collectives(const record::Attempt& attempt, CollectiveTable& collectives, Profile& profile);

}  // namespace stoker::profile
