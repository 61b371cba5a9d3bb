#include "launch/status/array_life.h"

#include <algorithm>

#include "launch/state/array_state.h"

namespace stoker::launch {
namespace {

// A job may end before all hosts see the last records of its tasks.
constexpr double kLateRecords = 20;
// sbatch may still wait for the controller.
constexpr double kArraySubmittingSeconds = 90;

// Judges an array without running jobs.
void judge_over(const RecordedStatus& own, RunLife& run) {
  const ArrayState& array = *own.array;
  const std::uint32_t open = array.waiting + array.running;
  run.life = own.records.is_cancelled ? Life::cancelled : array.not_done.empty() ? Life::done : Life::failed;
  if (open > 0 && !own.records.is_cancelled) run.note += format("; {} unfinished, and no job is left", open);
  run.records.exit_code = array.not_done.empty() ? 0 : std::max(1, array.exit_code);
  run.records.ended = array.ended;
}

// In a cancelled array, tasks that never started write no records.
bool expects_more_records(const RecordedStatus& own, const SchedulerStatus& status, double now) {
  const bool is_late = status.job.end && now - *status.job.end < kLateRecords;
  return is_late && (own.array->running > 0 || !own.records.is_cancelled);
}

}  // namespace

RunLife judge_array(const RecordedStatus& own, const SchedulerStatus& status, double now) {
  const ArrayState& array = *own.array;
  RunLife run{.life = Life::queued,
              .note = to_text(array),
              .scheduler_job = join(own.records.jobs, ","),
              .nodes = "",
              .records = own.records,
              .array = array};
  run.records.started = array.started;
  run.records.last_started = array.started;
  if (array.started > 0) run.life = Life::running;
  if (array.has_ended()) {
    judge_over(own, run);
    return run;
  }
  switch (status.kind) {
    case SchedulerStatus::Kind::not_asked:
      break;
    case SchedulerStatus::Kind::no_answer:
      if (array.running == 0) run.life = Life::unknown;
      run.note += format("; {}", status.problem.message());
      break;
    case SchedulerStatus::Kind::not_known:
      if (!own.records.is_submitting || now - own.records.submitted > kArraySubmittingSeconds)
        judge_over(own, run);
      break;
    case SchedulerStatus::Kind::known:
      if (run.scheduler_job.empty()) run.scheduler_job = status.job.id;
      if (slurm::is_over(status.job.state)) {
        if (!expects_more_records(own, status, now)) judge_over(own, run);
      } else if (status.job.state != slurm::JobState::pending) {
        run.life = Life::running;
        run.nodes = status.job.nodes;
      } else if (array.started == 0) {
        // Right after its submission, a job has no reason yet.
        const std::string why = waiting_note(status.job, now);
        if (!why.empty()) run.note += format("; {}", why);
      }
      break;
  }
  return run;
}

}  // namespace stoker::launch
