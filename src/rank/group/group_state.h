// The state machine of run_group: in which phase the ranks are, why they stop, and what that means for the
// run's ending. Pure functions: RankGroup feeds in events and performs the actions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rank/verdict.h"

namespace stoker::rank {

enum class GroupPhase {
  starting,  ///< not all ranks have joined
  running,   ///< all ranks have joined and were welcomed
  aborting,  ///< stopping before all ranks had joined
  stopping,  ///< stopping after that
};

/// Why the ranks stop. A refusal takes precedence over a signal, and a signal over all other causes.
enum class StopCause { none, rank_failed, checkpoint_overdue, time_limit, interrupted, refused };

struct GroupState {
  GroupPhase phase = GroupPhase::starting;
  StopCause cause = StopCause::none;
  std::string reason;                   ///< one line, for the stop event; of a refusal also for the ending
  int refusal_code = 0;                 ///< exit code of a refusal
  int interrupted_by = 0;               ///< the signal; 0: none
  bool is_signalled = false;            ///< a termination signal was handled, with or without effect
  bool is_save_requested = false;       ///< the ranks were asked to save before the time limit
  std::optional<double> healthy_until;  ///< Unix seconds when a signal or the time limit ended healthy ranks

  bool is_stopping() const { return phase == GroupPhase::aborting || phase == GroupPhase::stopping; }
  friend bool operator==(const GroupState&, const GroupState&) = default;
};

/// What happens to a group.
namespace group_event {
struct AllJoined {};
struct Refused {
  std::string text;
  int exit_code = 2;
};
struct RankFailed {
  std::string text;
};
/// A rank exited with 75, but its peers did not within the grace time.
struct CheckpointOverdue {};
struct SaveDue {};
struct TimeLimit {
  std::string text;
  double time = 0;  ///< Unix seconds
};
struct Termination {
  int signal = 0;
  bool was_stopping = false;        ///< before the ranks' latest events were handled
  bool has_reached_a_rank = false;  ///< the signal ended a rank before it reached this process
  bool have_all_ended = false;      ///< no rank is left
  double time = 0;                  ///< Unix seconds
};
}  // namespace group_event
using GroupEvent = std::variant<group_event::AllJoined, group_event::Refused, group_event::RankFailed,
                                group_event::CheckpointOverdue, group_event::SaveDue, group_event::TimeLimit,
                                group_event::Termination>;

enum class GroupAction {
  none,
  welcome,       ///< send the rendezvous address
  request_save,  ///< forward SIGUSR1
  stop,          ///< record the reason and send `signal`
  kill,          ///< send SIGKILL at once
};

struct GroupTransition {
  GroupState state;
  GroupAction action = GroupAction::none;
  int signal = 0;  ///< of a stop
};

/// The transition for an event. Events that come too late change nothing.
GroupTransition next(GroupState state, const GroupEvent& event);

struct EndingFacts {
  std::string deadline_text;                                   ///< "time limit 2h (resources.time)"
  std::function<bool()> has_checkpoint = [] { return true; };  ///< called when ranks exited with 75
  std::string lost_folder = {};  ///< why the run folder is lost; "" while it is in its place
};
/// The ending of a run in this state.
Ending conclude(const GroupState& state, const std::vector<RankStatus>& statuses, const EndingFacts& facts);

}  // namespace stoker::rank
