// The state machine of `stoker rank`: whether its command runs, why it stops, and the exit code. Pure
// functions: RankRunner feeds in events and performs the actions.
#pragma once

#include <optional>
#include <variant>

#include "base/process.h"
#include "rank/member/rank_config.h"
#include "stoker/time.h"

namespace stoker::rank {

enum class RunnerPhase {
  running,   ///< the command runs
  draining,  ///< it has ended, but some of its descendants have not
  over,      ///< no process is left
};

/// Why the processes are ended. A lost run takes precedence.
enum class RunnerStop {
  none,
  requested,  ///< by the run or by a signal
  leftovers,  ///< the command ended and left processes behind
  run_lost,   ///< the connection to the run broke: no process would ever end this one
};

struct RunnerState {
  RunnerPhase phase = RunnerPhase::running;
  RunnerStop stop = RunnerStop::none;
  bool is_dismissed = false;        ///< torchrun, all of whose ranks have ended
  std::optional<MonoTime> kill_at;  ///< when SIGKILL follows
  Exit exit;                        ///< of the command

  bool has_ended() const { return phase != RunnerPhase::running; }
  bool is_stopping() const { return stop != RunnerStop::none; }
};

/// What happens to a rank. `kill_at` is the end of the grace time.
namespace runner_event {
struct StopRequested {
  int signal = 0;
  MonoTime kill_at;
};
struct RunLost {
  MonoTime kill_at;
};
struct Dismissed {};
struct CommandExited {
  Exit exit;
  bool has_descendants = false;
  MonoTime kill_at;
};
struct DescendantsGone {};
}  // namespace runner_event
using RunnerEvent = std::variant<runner_event::StopRequested, runner_event::RunLost, runner_event::Dismissed,
                                 runner_event::CommandExited, runner_event::DescendantsGone>;

enum class RunnerAction {
  none,
  signal_all,    ///< send `signal` to all descendants
  kill_command,  ///< SIGKILL to the command alone
};

struct RunnerTransition {
  RunnerState state;
  RunnerAction action = RunnerAction::none;
  int signal = 0;
};

RunnerTransition next(RunnerState state, const RunnerEvent& event);

/// The exit code of `stoker rank`. The run knows how the command ended. With the real code, torchrun would
/// kill the other ranks before they can stop, and print a traceback. srun does not need the code of a
/// dismissed torchrun either.
int exit_code(const RunnerState& state, Role role);

}  // namespace stoker::rank
