// Profiles from one row per step and rank: the trainer's metrics-<rank>.csv, and profile-<rank>.csv of
// stoker.profile(). Formats: docs/formats/run.md. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "profile/gains.h"
#include "profile/profile.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::profile {

/// The steps to count; by default all but the warm-up.
struct StepSelection {
  std::optional<std::int64_t> first;
  std::optional<std::int64_t> last;
};

/// Parses "100..500", "100..", "..500" or "100". Invalid with the syntax for other texts.
Result<StepSelection> parse_steps(std::string_view text);

/// Fills the gains, from at least 1 %. Used by the readers of this room.
void find_gains(const StepModel& model, Profile& profile);

/// More steps than this are not counted: the last ones are.
inline constexpr std::size_t kMostSteps = 200'000;

/// Fills source, range, ranks, measured parts and gains from the files of the ranks. Damaged rows, and ranks
/// without a selected step, are left out and noted. NotFound without any selected step. Memory is bounded by
/// the steps of one rank.
Status read_records(const std::map<int, Path>& files, TimeSource source, const StepSelection& selection,
                    Profile& profile);

/// The files `<stem><rank><end>` of a folder; empty if it cannot be read.
std::map<int, Path> files_by_rank(const Path& folder, std::string_view stem, std::string_view end);

/// The files of an attempt, and which they are; empty if nothing was recorded.
std::map<int, Path> find_records(const record::Attempt& attempt, TimeSource* source);

}  // namespace stoker::profile
