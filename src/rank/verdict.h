// Why a run ended, from what is known of each rank: the earliest failure is the cause, all later ones are
// what came of it. But a rank whose peer was killed may leave, and be seen to, before anybody has looked at
// the killed one: a sudden death is the cause of what surrounds it. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/strong.h"
#include "rank/report.h"
#include "record/run_events.h"

namespace stoker::rank {

/// The exit code of a command that has written a checkpoint and stopped because it was asked to.
inline constexpr int kStoppedAfterCheckpoint = 75;

/// A failure that the run saw itself: a rank that did not come, was lost, stands still.
struct Judgement {
  double time = 0;   ///< Unix seconds
  std::string what;  ///< after "rank 1 (node002) ": "did not come within 60 s (timeouts.start)"
  int exit_code = 1;
  bool is_sudden = false;  ///< a death that no failure of another rank brings about
  bool is_loss = false;    ///< it was killed from outside, or is no longer heard of
};

/// What is known of one rank.
struct RankStory {
  Rank rank;
  std::string host;
  bool joined = false;
  Whereabouts where;  ///< last heard of
  std::optional<Ended> ended;
  std::optional<Judgement> judgement;
};

/// How a run ended.
struct Ending {
  record::Outcome outcome = record::Outcome::done;
  int exit_code = 0;
  std::optional<int> first_rank;  ///< whose failure decided
  std::string cause;              ///< one line; "" when all is done
  std::string others;             ///< "ranks 0, 2, 3 stopped"; "" when there are none
  std::string last_line;          ///< the last thing the first rank printed; may be ""
  int interrupted_by = 0;         ///< the signal with which the end began; 0: none
  bool is_loss = false;           ///< the first rank's failure is what a dying node looks like, too
};

/// Text before the reason: "rank 1 (node002) left at epoch 3 step 118, phase backward: killed by signal 9
/// (SIGKILL)".
std::string describe_failure(const RankStory& story);

/// What is known of a run whose ranks left with 75.
struct StopFacts {
  bool has_checkpoint = true;  ///< 75 is also what sysexits.h calls EX_TEMPFAIL
  std::string asked_by;        ///< "interrupted by SIGTERM"; "" when nobody asked
  std::string before;  ///< the ranks were asked to save before "time 2h is over (resources.time)"; or ""
};
/// "interrupted by SIGTERM, stopped after a checkpoint"; where there is none, which ranks say that they
/// saved.
std::string describe_stop(const std::vector<RankStory>& stories, const StopFacts& stop);

/// What is written of it.
record::AttemptEnded to_event(const Ending& ending);

/// Whether a rank failed before `time` (Unix seconds), by itself: not of a signal that asks for the end.
bool has_failed_before(const std::vector<RankStory>& stories, double time);

/// Judges a run that was neither interrupted nor out of time, or failed before that.
Ending judge(const std::vector<RankStory>& stories);

/// "rank 0 stopped; ranks 2-4 failed after it; rank 1 done before it" of all ranks but `first`.
std::string describe_others(const std::vector<RankStory>& stories, std::optional<int> first);

/// {0, 2, 3, 4} as "ranks 0, 2-4", {1} as "rank 1".
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace stoker::rank
