// Durations of collectives from flight recorders: the latest ones of each rank. Thread-safe: no state.
#pragma once

#include <map>

#include "profile/profile.h"
#include "record/run_folder.h"

namespace stoker::profile {

/// Adds the collectives that ended, of the trainer's recorders and of the dumps of torch's recorder.
/// Unreadable files are noted.
void add_flight_collectives(const record::Attempt& attempt, CollectiveTable& collectives, Profile& profile);

/// Files of flight recorders by rank: of the trainer, or dumps of torch.
using FlightFiles = std::map<int, Path>;
enum class FlightKind { none, trainer, torch };
/// What the first bytes of the file are.
FlightKind flight_kind(const Path& file);
/// As add_flight_collectives().
void add_flight_files(const FlightFiles& files, FlightKind kind, CollectiveTable& collectives,
                      Profile& profile);

}  // namespace stoker::profile
