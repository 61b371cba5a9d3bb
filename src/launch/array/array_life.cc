#include "launch/array/array_life.h"

#include <algorithm>

#include "launch/array/array_state.h"

namespace stoker::launch {
namespace {

// A job is over before all hosts see what its tasks wrote last.
constexpr double kLateRecords = 20;
// sbatch may still be talking to the controller.
constexpr double kSubmittingSeconds = 90;

// Of an array that nothing runs of any more.
void judge_over(const OwnWord& own, RunLife& run) {
  const ArrayState& array = *own.array;
  const std::uint32_t open = array.waiting + array.running;
  run.life = own.records.is_cancelled ? Life::cancelled : array.not_done.empty() ? Life::done : Life::failed;
  if (open > 0 && !own.records.is_cancelled)
    run.note += format("; {} of them have no end, and no job is left", open);
  run.records.exit_code = array.not_done.empty() ? 0 : std::max(1, array.exit_code);
  run.records.ended = array.ended;
}

// Of a cancelled array those tasks that had not begun never say anything.
bool may_say_more(const OwnWord& own, const SchedulerWord& word, double now) {
  const bool is_late = word.job.end && now - *word.job.end < kLateRecords;
  return is_late && (own.array->running > 0 || !own.records.is_cancelled);
}

}  // namespace

RunLife judge_array(const OwnWord& own, const SchedulerWord& word, double now) {
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
  switch (word.kind) {
    case SchedulerWord::Kind::not_asked:
      break;
    case SchedulerWord::Kind::no_answer:
      if (array.running == 0) run.life = Life::unknown;
      run.note += format("; {}", word.problem.message());
      break;
    case SchedulerWord::Kind::not_known:
      if (!own.records.is_submitting || now - own.records.submitted > kSubmittingSeconds)
        judge_over(own, run);
      break;
    case SchedulerWord::Kind::known:
      if (run.scheduler_job.empty()) run.scheduler_job = word.job.id;
      if (slurm::is_over(word.job.state)) {
        if (!may_say_more(own, word, now)) judge_over(own, run);
      } else if (word.job.state != slurm::JobState::pending) {
        run.life = Life::running;
        run.nodes = word.job.nodes;
      } else if (array.started == 0) {
        const std::string_view words = slurm::reason_words(word.job.reason);
        run.note += format("; {}{}{}", printable(word.job.reason), words.empty() ? "" : ": ", words);
      }
      break;
  }
  return run;
}

}  // namespace stoker::launch
