// The result of `stoker profile`, as values: rendered as text (print/text.h) or JSON (print/json.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/language/message.h"
#include "profile/collectives.h"
#include "profile/parts.h"

namespace stoker::profile {

/// Where the times come from.
enum class TimeSource {
  trainer,  ///< metrics-<rank>.csv of the trainer
  program,  ///< profile-<rank>.csv of stoker.profile()
  trace,    ///< Chrome traces, as torch.profiler writes them
  none,     ///< no times: only collectives
};
std::string_view key_of(TimeSource source);

/// One rank.
struct RankProfile {
  int rank = 0;
  std::string host;  ///< "" if unknown
  std::int64_t steps = 0;
  PartTimes times;          ///< summed over the steps; the parts add up to the steps
  Nanos communication = 0;  ///< all of it, also what is hidden; 0 if unknown

  double seconds_of(ProfilePart part) const { return per_step(times[part]); }
  double step_s() const { return per_step(times.total()); }

 private:
  double per_step(Nanos nanos) const {
    return steps > 0 ? 1e-9 * static_cast<double>(nanos) / static_cast<double>(steps) : 0;
  }
};

/// What steps would gain without a part, or (nullopt) if all ranks were as fast as their mean.
struct Gain {
  std::optional<ProfilePart> part;
  double factor = 1;  ///< of the speed: 1.31
};

/// The steps that count.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t warm_up = 0;  ///< steps before `first` that were left out as warm-up
};

struct Profile {
  std::string subject;  ///< id of a run, or names of files
  int attempt = 0;      ///< 0: no run
  TimeSource source = TimeSource::none;
  std::optional<StepRange> range;     ///< nullopt: a trace without steps, which counts as one
  std::vector<RankProfile> ranks;     ///< by rank
  std::vector<ProfilePart> measured;  ///< the parts that the source has, in order; others are in `other`
  std::vector<Gain> gains;            ///< of at least 1 %, the largest first
  std::vector<CollectiveRow> collectives;
  std::vector<Message> notes;
  Message advice;       ///< what to do about the largest gain; may be empty
  std::string command;  ///< for it; may be ""

  /// Over the steps of all ranks.
  double seconds_of(ProfilePart part) const;
  double step_s() const;
  /// All communication in a step, also what is hidden; 0 if unknown.
  double communication_s() const;
  std::int64_t steps() const;
  /// The rank with the most time in the part; nullptr for a single rank, and if no rank spends time there.
  const RankProfile* worst_rank(ProfilePart part) const;
  /// The rank with the longest step without communication, for which its peers wait.
  const RankProfile* slowest_rank() const;
};

}  // namespace stoker::profile
