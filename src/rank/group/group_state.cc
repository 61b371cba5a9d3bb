#include "rank/group/group_state.h"

#include <csignal>
#include <utility>

namespace stoker::rank {
namespace {

std::string interruption(int signal) { return format("interrupted by {}", signal_name(signal)); }

// The first cause of a stop decides its reason.
GroupTransition stop(GroupState state, StopCause cause, std::string reason, int signal = SIGTERM) {
  if (state.is_stopping()) return {std::move(state)};
  state.phase = state.phase == GroupPhase::running ? GroupPhase::stopping : GroupPhase::aborting;
  state.cause = cause;
  state.reason = std::move(reason);
  return {std::move(state), GroupAction::stop, signal};
}

struct GroupHandler {
  GroupState state;

  GroupTransition operator()(const group_event::AllJoined&) {
    if (state.phase != GroupPhase::starting) return {std::move(state)};
    state.phase = GroupPhase::running;
    return {std::move(state), GroupAction::welcome};
  }

  GroupTransition operator()(const group_event::Refused& event) {
    if (state.cause == StopCause::refused) return {std::move(state)};
    state.refusal_code = event.exit_code;
    GroupTransition step = stop(std::move(state), StopCause::refused, event.text);
    step.state.cause = StopCause::refused;
    step.state.reason = event.text;
    return step;
  }

  GroupTransition operator()(const group_event::RankFailed& event) {
    return stop(std::move(state), StopCause::rank_failed, event.text);
  }

  GroupTransition operator()(const group_event::CheckpointOverdue&) {
    return stop(std::move(state), StopCause::checkpoint_overdue,
                "a rank exited with 75 (saved and stopped), but its peers did not");
  }

  GroupTransition operator()(const group_event::SaveDue&) {
    if (state.phase != GroupPhase::running || state.is_save_requested) return {std::move(state)};
    state.is_save_requested = true;
    return {std::move(state), GroupAction::request_save};
  }

  GroupTransition operator()(const group_event::TimeLimit& event) {
    if (!state.is_stopping()) state.healthy_until = event.time;
    return stop(std::move(state), StopCause::time_limit, event.text);
  }

  GroupTransition operator()(const group_event::Termination& event) {
    const bool is_first = !std::exchange(state.is_signalled, true);
    const bool is_known = state.interrupted_by == 0 && event.has_reached_a_rank;
    if (is_known) interrupt(event.signal);
    if (!state.is_stopping() && !event.have_all_ended) {
      state.interrupted_by = event.signal;
      state.healthy_until = event.time;
      return stop(std::move(state), StopCause::interrupted, interruption(event.signal), event.signal);
    }
    // The ranks already stop for the same reason, or the sender did not know that they stop.
    const bool is_new = !event.was_stopping && state.is_stopping();
    const bool is_too_late = event.have_all_ended && is_first;
    if (is_known || is_new || is_too_late) return {std::move(state)};
    return {std::move(state), GroupAction::kill};
  }

  void interrupt(int signal) {
    state.interrupted_by = signal;
    if (state.cause != StopCause::refused) state.cause = StopCause::interrupted;
  }
};

Ending stopped(const std::vector<RankStatus>& statuses, int exit_code, std::string cause) {
  return {.outcome = record::Outcome::stopped,
          .exit_code = exit_code,
          .cause = std::move(cause),
          .other_ranks = describe_other_ranks(statuses, std::nullopt)};
}

Ending ending_of(const GroupState& state, const std::vector<RankStatus>& statuses, const EndingFacts& facts) {
  if (state.cause == StopCause::refused)
    return {.outcome = record::Outcome::failed, .exit_code = state.refusal_code, .cause = state.reason};
  Ending ending = judge(statuses);
  if (state.healthy_until && has_failed_before(statuses, *state.healthy_until)) return ending;
  const bool is_interrupted = state.cause == StopCause::interrupted;
  const bool is_time_limit = state.cause == StopCause::time_limit;
  if (ending.outcome == record::Outcome::stopped) {
    StopFacts stop{.has_checkpoint = facts.has_checkpoint()};
    if (is_interrupted) {
      stop.asked_by = interruption(state.interrupted_by);
    } else if (is_time_limit) {
      stop.asked_by = facts.deadline_text;
    } else if (state.is_save_requested) {
      stop.before = facts.deadline_text;
    }
    ending.cause = describe_stop(statuses, stop);
    return ending;
  }
  if (is_interrupted)
    return stopped(statuses, 128 + state.interrupted_by, interruption(state.interrupted_by));
  if (is_time_limit) return stopped(statuses, record::kOutOfTime, facts.deadline_text);
  return ending;
}

}  // namespace

GroupTransition next(GroupState state, const GroupEvent& event) {
  return std::visit(GroupHandler{std::move(state)}, event);
}

Ending conclude(const GroupState& state, const std::vector<RankStatus>& statuses, const EndingFacts& facts) {
  Ending ending = ending_of(state, statuses, facts);
  ending.interrupted_by = state.interrupted_by;
  ending.is_folder_lost = !facts.lost_folder.empty();
  ending.lost_output = ending.is_folder_lost ? facts.lost_folder : describe_lost_output(statuses);
  return ending;
}

}  // namespace stoker::rank
