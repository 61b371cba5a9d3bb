#include "launch/status/control.h"

#include <algorithm>
#include <csignal>

#include "base/file.h"
#include "base/user.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRecordsPollInterval = 500ms;
constexpr Duration kFirstPollInterval = 1s;

// The supervisor of the attempt, if its first event names one.
std::optional<record::ProcessIdentity> supervisor_of(const record::Attempt& attempt) {
  const auto log = record::read_attempt_events(attempt.folder());
  if (!log.ok()) return std::nullopt;
  for (const record::Event& event : log->events) {
    if (const auto started = record::attempt_started(event)) return started->supervisor;
  }
  return std::nullopt;
}

}  // namespace

Result<Cancellation> plan_cancel(const record::RunFolder& run, slurm::Scheduler& scheduler,
                                 Deadline deadline) {
  Cancellation plan{.before = query_life(run, scheduler, deadline)};
  const RunLife& life = plan.before;
  if (life.life == Life::created) return invalid("run {}: has not started, nothing to cancel", run.id());
  if (is_over(life.life)) return plan;
  if (!life.scheduler_job.empty()) {
    plan.how = Cancellation::How::scheduler;
    plan.scheduler_job = life.scheduler_job;
    return plan;
  }
  if (life.records.is_submitting)
    return unavailable("run {}: unknown whether it is in the queue ({})", run.id(), life.note);
  STOKER_ASSIGN_OR_RETURN(attempt, run.last_attempt());
  const auto supervisor = supervisor_of(attempt);
  if (!supervisor)
    return unavailable("run {}: is just starting", run.id()).cure("stoker cancel {}", run.id());
  if (!record::is_alive_on_this_host(*supervisor)) {
    return unavailable("run {}: runs on {}, outside a queue", run.id(), printable(supervisor->host))
        .cure("ssh {} kill {}", printable(supervisor->host), supervisor->pid);
  }
  plan.how = Cancellation::How::signal;
  plan.pid = supervisor->pid;
  return plan;
}

Status cancel(const record::RunFolder& run, const Cancellation& what, slurm::Scheduler& scheduler,
              Deadline deadline) {
  if (what.how == Cancellation::How::none) return {};
  STOKER_ASSIGN_OR_RETURN(attempt, run.last_attempt());
  // Record the request first: otherwise a job that ends at once looks as if it had failed.
  STOKER_ASSIGN_OR_RETURN(events, record::EventWriter::open(attempt.cancel_events()));
  STOKER_RETURN_IF_ERROR(
      write_event(events, record::CancelRequested{.user = user_name(), .host = record::this_process().host}));
  if (what.how == Cancellation::How::scheduler) {
    // An array may be several jobs; an ended one is no failure if another one was cancelled.
    Status first;
    std::size_t ended = 0;
    for (std::string_view id : split(what.scheduler_job, ',')) {
      const Status status = scheduler.cancel(id, deadline);
      if (status.ok()) ++ended;
      if (first.ok()) first = status;
    }
    return ended > 0 && first.code() == Code::not_found ? Status() : first;
  }
  const auto supervisor = supervisor_of(attempt);
  const bool is_there =
      supervisor && supervisor->pid == what.pid && record::is_alive_on_this_host(*supervisor);
  if (is_there && ::kill(static_cast<pid_t>(what.pid), SIGTERM) != 0 && errno != ESRCH)
    return posix_error(format("process {}", what.pid), errno);
  return {};
}

Result<RunLife> wait_for(const record::RunFolder& run, slurm::Scheduler& scheduler,
                         const WaitOptions& options) {
  const RealClock clock;
  RealClock sleeper;
  Duration pause = kFirstPollInterval;
  MonoTime next_question = clock.mono();
  std::string reported;
  RunLife last;  // the last state confirmed by the scheduler
  for (;;) {
    // Without its folder, a run would look as if it never started.
    if (!folder_exists(run.folder())) {
      return not_found("run {}: its folder {} was removed: its end is unknown", run.id(),
                       printable(run.folder().string()));
    }
    const RecordedStatus own = read_recorded_status(run, unix_seconds(clock.wall()));
    if (!own.problem.ok()) return own.problem;
    RunLife life = judge_life(own, {}, unix_seconds(clock.wall()));
    const bool is_asked = needs_scheduler(own) && clock.mono() >= next_question;
    if (is_asked) {
      life = query_life(run, scheduler, Deadline::after(std::min(kAnswerLimit, options.deadline.left())));
      next_question = clock.mono() + pause;
      pause = std::min(kLongestPollInterval, pause + pause / 2);
    }
    const bool is_certain = is_asked || !needs_scheduler(own);
    const std::string state = format("{} {}", to_text(life.life), life.note);
    if (is_certain && state != reported && options.on_change) options.on_change(life);
    if (is_certain) reported = state;
    if (is_certain && is_over(life.life)) return life;
    if (is_certain) last = std::move(life);
    if (options.deadline.passed()) {
      return timeout("run {}: still {}{}", run.id(), to_text(last.life),
                     last.note.empty() ? "" : format(" ({})", last.note));
    }
    if (options.should_stop && options.should_stop()) return cancelled("run {}: wait cancelled", run.id());
    sleeper.sleep(std::min(kRecordsPollInterval, options.deadline.left()));
  }
}

}  // namespace stoker::launch
