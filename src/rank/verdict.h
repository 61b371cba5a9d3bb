// The root cause of a run's end from the status of each rank: the earliest failure is the cause, later ones
// are effects. But a peer of a killed rank may exit, and be noticed, before the killed one: a sudden death is
// the cause of failures around it. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "rank/report.h"
#include "record/run_events.h"
#include "stoker/strong.h"

namespace stoker::rank {

/// The exit code of a command that saved a checkpoint and stopped on request.
using exit_code::kStoppedAfterCheckpoint;

/// A failure that the supervisor detected: a rank that did not join, was lost, or hangs.
struct DetectedFailure {
  double time = 0;   ///< Unix seconds
  std::string what;  ///< after "rank 1 (node002) ": "did not join within 60 s (timeouts.start)"
  int exit_code = 1;
  bool is_sudden = false;  ///< a death that cannot be an effect of a different rank's failure
  bool is_loss = false;    ///< it was killed from outside, or is unreachable
  bool is_hang = false;    ///< it made no progress
};

/// The status of one rank.
struct RankStatus {
  Rank rank;
  std::string host;
  bool joined = false;
  TrainingPosition where;  ///< last reported position
  std::optional<RankExit> ended;
  std::optional<DetectedFailure> detected_failure;
};

/// How a run ended.
struct Ending {
  record::Outcome outcome = record::Outcome::done;
  int exit_code = 0;
  std::optional<int> first_rank;  ///< the rank whose failure decided
  std::string cause;              ///< one line; "" on success
  std::string other_ranks;        ///< "ranks 0, 2, 3 stopped"; may be ""
  std::string last_line;          ///< the first rank's last line of output; may be ""
  int interrupted_by = 0;         ///< the signal that started the end; 0: none
  bool is_loss = false;           ///< the first rank's failure may be a node failure
  std::string lost_output;        ///< "rank 0 (n1): ...", if a log lacks output; or FolderLoss as text
  bool is_folder_lost = false;    ///< the run folder was removed, moved or replaced during the run
};

/// One line: "rank 1 (node002) exited at epoch 3 step 118, phase backward: killed by signal 9 (SIGKILL)".
std::string describe_failure(const RankStatus& status);

/// Facts about a run whose ranks exited with 75.
struct StopFacts {
  bool has_checkpoint = true;  ///< 75 is also what sysexits.h calls EX_TEMPFAIL
  std::string asked_by;        ///< "interrupted by SIGTERM"; "" without a request
  std::string before;          ///< the time limit before which the ranks were asked to save: "time limit 2h
                               ///< (resources.time)"; or ""
};
/// "interrupted by SIGTERM, stopped after a checkpoint"; without a checkpoint, the ranks that claim to have
/// saved.
std::string describe_stop(const std::vector<RankStatus>& statuses, const StopFacts& stop);

/// "rank 0 (n1): rank-0000.log: no space left on device; 3 MB of output are missing" for the first such rank.
std::string describe_lost_output(const std::vector<RankStatus>& statuses);

/// The event for the records.
record::AttemptEnded to_event(const Ending& ending);

/// Whether a rank failed by itself before `time` (Unix seconds), and not of a termination signal.
bool has_failed_before(const std::vector<RankStatus>& statuses, double time);

/// Judges a run that was neither interrupted nor out of time, or failed before that.
Ending judge(const std::vector<RankStatus>& statuses);

/// "rank 0 stopped; ranks 2-4 failed later; rank 1 done earlier" of all ranks but `first`.
std::string describe_other_ranks(const std::vector<RankStatus>& statuses, std::optional<int> first);

/// Where ranks were when a hang ended them, a line for each place, rare ones first: "rank 3 was in load
/// (train.py:12)", "ranks 0-2 were in ...". At most `count` lines.
std::vector<std::string> describe_stacks(const std::vector<RankStatus>& statuses, std::size_t count);

/// {0, 2, 3, 4} as "ranks 0, 2-4", {1} as "rank 1".
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace stoker::rank
