#include "rank/member/runner_state.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace stoker::rank {
namespace {

// Only the first stop sends its signal; SIGKILL is always sent.
RunnerTransition stop(RunnerState state, RunnerStop cause, int signal, MonoTime kill_at) {
  const bool is_first = !state.is_stopping();
  if (is_first || cause == RunnerStop::run_lost) state.stop = cause;
  state.kill_at = std::min(state.kill_at.value_or(kill_at), kill_at);
  if (!is_first && signal != SIGKILL) return {std::move(state)};
  return {std::move(state), RunnerAction::signal_all, signal};
}

struct RunnerHandler {
  RunnerState state;

  RunnerTransition operator()(const runner_event::StopRequested& event) {
    return stop(std::move(state), RunnerStop::requested, event.signal, event.kill_at);
  }
  RunnerTransition operator()(const runner_event::RunLost& event) {
    return stop(std::move(state), RunnerStop::run_lost, SIGTERM, event.kill_at);
  }
  // The remaining processes below torchrun end by themselves.
  RunnerTransition operator()(const runner_event::Dismissed&) {
    if (state.has_ended()) return {std::move(state)};
    state.is_dismissed = true;
    return {std::move(state), RunnerAction::kill_command};
  }
  RunnerTransition operator()(const runner_event::CommandExited& event) {
    state.exit = event.exit;
    state.phase = event.has_descendants ? RunnerPhase::draining : RunnerPhase::over;
    if (!event.has_descendants || state.is_stopping()) return {std::move(state)};
    return stop(std::move(state), RunnerStop::leftovers, SIGTERM, event.kill_at);
  }
  RunnerTransition operator()(const runner_event::DescendantsGone&) {
    if (state.phase == RunnerPhase::draining) state.phase = RunnerPhase::over;
    return {std::move(state)};
  }
};

}  // namespace

RunnerTransition next(RunnerState state, const RunnerEvent& event) {
  return std::visit(RunnerHandler{std::move(state)}, event);
}

int exit_code(const RunnerState& state, Role role) {
  const bool is_reported = role == Role::torchrun_rank && state.stop != RunnerStop::run_lost;
  return is_reported || state.is_dismissed ? 0 : state.exit.shell_code();
}

}  // namespace stoker::rank
