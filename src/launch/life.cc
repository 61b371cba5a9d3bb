#include "launch/life.h"

#include <algorithm>
#include <csignal>

#include "launch/array/array_life.h"
#include "launch/submit.h"
#include "observe/batch_ending.h"
#include "slurm/queue/job_table.h"

namespace stoker::launch {
namespace {

using record::State;
using slurm::JobState;

// sbatch may still be talking to the controller.
constexpr double kSubmittingSeconds = 90;

constexpr std::string_view kTimeIsOver = "its time limit was over";

Life life_of(State state) {
  switch (state) {
    case State::created:
      return Life::created;
    case State::queued:
      return Life::queued;
    case State::running:
      return Life::running;
    case State::done:
      return Life::done;
    case State::failed:
      return Life::failed;
    case State::stopped:
      return Life::stopped;
    case State::lost:
      return Life::lost;
  }
  return Life::lost;
}

// The ranks' own supervisor sees a cgroup's limit at work, where there is one.
bool names_memory(const record::RunState& records) {
  return records.state == State::failed && records.reason.find(", out of memory") != std::string::npos;
}

bool was_interrupted(const record::RunState& records) {
  return records.state == State::stopped && records.exit_code.value_or(0) > 128;
}

// It has an ending of its own, which says more than the scheduler could. What came after Slurm had begun to
// end the job (ranks killed, connections broken) is no ending of its own.
bool has_own_ending(const OwnWord& own) {
  const record::RunState& records = own.records;
  if (records.state == State::done || records.exit_code == 75) return true;
  if (own.ending) return false;
  // A node that dies takes the ranks first, and perhaps leaves its supervisor time to tell of them: then
  // Slurm starts the job again.
  if (records.state == State::failed && records.is_loss && own.was_submitted) return false;
  return records.state == State::failed || (records.state == State::stopped && !was_interrupted(records));
}

// A preemption that reached the ranks first, or a node that the run saw go before Slurm did: the job is
// started again.
bool seems_ended_from_outside(const record::RunState& records) {
  return records.state == State::failed &&
         (records.exit_code == 128 + SIGTERM ||
          records.reason.find("the node or its link is gone") != std::string::npos);
}

// The last attempt is over, and by its records another one may come after it by itself. What Slurm ended for
// good is not started again by it.
bool may_go_on(const OwnWord& own) {
  const record::RunState& records = own.records;
  const bool is_over =
      records.state == State::stopped || records.state == State::failed || records.state == State::lost;
  const bool is_ended_for_good = own.ending == JobState::timeout || own.ending == JobState::cancelled ||
                                 own.ending == JobState::out_of_memory;
  const bool has_more = records.link < records.links || records.may_restart ||
                        (!is_ended_for_good && seems_ended_from_outside(records));
  return is_over && has_more && !records.has_no_next && !records.is_cancelled;
}

std::string waiting_words(std::string_view reason) {
  const std::string_view words = slurm::reason_words(reason);
  return printable(reason) + (words.empty() ? "" : format(": {}", words));
}

// How the scheduler says that a job came to its end.
std::string ending_note(const slurm::JobFacts& job, const record::RunState& records, Life life) {
  const std::string id = records.scheduler_job.empty() ? job.id : records.scheduler_job;
  switch (life) {
    case Life::timeout:
      return std::string(kTimeIsOver);
    case Life::cancelled:
      return job.state_text.find(" by ") == std::string::npos
                 ? ""
                 : "by user " + printable(job.state_text.substr(job.state_text.find(" by ") + 4));
    case Life::failed:
      if (records.started == 0 || records.state == State::queued) {
        return format("job {} ended{} before a rank started: its log is slurm.log in the attempt's folder",
                      id, job.exit_code ? format(" with exit code {}", *job.exit_code) : "");
      }
      return format("job {} is {}, and its supervisor left no ending", id, printable(job.state_text));
    default:
      return format("job {}: {}", id, printable(job.state_text));
  }
}

std::string memory_note(const OwnWord& own) {
  const std::string took = own.figures.empty() ? "" : "took " + own.figures;
  return took + (took.empty() || own.records.reason.empty() ? "" : "; ") + own.records.reason;
}

void judge_known(const OwnWord& own, const slurm::JobFacts& job, double now, RunLife& run) {
  const record::RunState& records = own.records;
  run.nodes = job.nodes;
  if (run.scheduler_job.empty()) run.scheduler_job = job.id;
  const std::optional<Life> ending = ending_of(job.state);
  if (has_own_ending(own)) return;
  const bool is_lost_rank = records.state == State::failed && !own.ending;
  if (ending == Life::failed && is_lost_rank) return;  // what it says of itself is more
  if (ending) {
    run.life = *ending;
    run.note = ending_note(job, records, run.life);
  } else if (job.state == JobState::pending) {
    run.life = Life::queued;
    run.note = waiting_note(job, now);
    if (records.started > 0 && records.state != State::queued)
      run.note = format("{}{}started again by Slurm", run.note, run.note.empty() ? "" : ", ");
  } else if (own.ending && job.state != JobState::running) {
    // Its processes are being ended. What is preempted, or has lost a node, is started again.
    if (run.life != Life::preempted && run.life != Life::node_failed && run.life != Life::queued) return;
    run.life = Life::queued;
    run.note = "its processes are being ended, then Slurm starts it again";
  } else {
    run.note = is_lost_rank ? records.reason + "; its job is not over, Slurm may miss a node" : "";
    if (records.state == State::lost) {
      run.note = "no sign of life from its supervisor, and Slurm says " + std::string(to_text(job.state));
    } else if (records.state == State::queued) {
      run.note = "has its nodes, not begun yet";
    }
    run.life = Life::running;
  }
}

void judge_unknown_job(const OwnWord& own, double now, RunLife& run) {
  const record::RunState& records = own.records;
  if (has_own_ending(own) || own.ending || records.state == State::running) return;
  if (records.is_submitting) {
    if (now - records.submitted < kSubmittingSeconds) {
      run.note = "being submitted";
      return;
    }
    run.life = Life::failed;
    run.note = "never reached the queue: its submission was cut off";
  } else if (records.is_cancelled) {
    run.life = Life::cancelled;
    run.note = "";
  } else if (records.state == State::queued) {
    run.life = Life::unknown;
    run.note = format("Slurm knows no job {} (any more), and it never began", records.scheduler_job);
  }
}

}  // namespace

std::optional<Life> ending_of(JobState state) {
  switch (state) {
    case JobState::cancelled:
      return Life::cancelled;
    case JobState::timeout:
    case JobState::deadline:
      return Life::timeout;
    case JobState::out_of_memory:
      return Life::out_of_memory;
    case JobState::node_failed:
      return Life::node_failed;
    case JobState::preempted:
      return Life::preempted;
    case JobState::failed:
    case JobState::completed:
      return Life::failed;
    default:
      return std::nullopt;
  }
}

std::string_view to_text(Life life) {
  switch (life) {
    case Life::created:
      return "created";
    case Life::queued:
      return "queued";
    case Life::running:
      return "running";
    case Life::done:
      return "done";
    case Life::failed:
      return "failed";
    case Life::stopped:
      return "stopped";
    case Life::cancelled:
      return "cancelled";
    case Life::timeout:
      return "timeout";
    case Life::out_of_memory:
      return "out of memory";
    case Life::node_failed:
      return "node failed";
    case Life::preempted:
      return "preempted";
    case Life::lost:
      return "lost";
    case Life::unknown:
      return "unknown";
  }
  return "unknown";
}

bool is_over(Life life) {
  return life != Life::created && life != Life::queued && life != Life::running && life != Life::unknown;
}

std::string waiting_note(const slurm::JobFacts& job, double now) {
  std::string note = waiting_words(job.reason);
  if (job.start && *job.start > now + 60) {
    const auto left = std::chrono::duration_cast<Duration>(Seconds(*job.start - now));
    note += format("{}start likely in {}", note.empty() ? "" : ", ", rounded_duration(left));
  }
  return note;
}

int exit_code_of(Life life, std::optional<int> own_code) {
  const int own = own_code.value_or(0);
  switch (life) {
    case Life::done:
      return 0;
    case Life::timeout:
      return own == 75 ? 75 : 124;
    case Life::cancelled:
      return own == 75 ? 75 : 130;
    case Life::out_of_memory:
      return 137;
    case Life::node_failed:
    case Life::preempted:
    case Life::lost:
      return 3;
    default:
      return own != 0 ? own : 1;
  }
}

int exit_code_of(const RunLife& run) { return exit_code_of(run.life, run.records.exit_code); }

OwnWord own_word(const record::RunFolder& run, double now) {
  OwnWord own{
      .records = record::derive_state(run, {.now = now}), .ending = std::nullopt, .figures = "", .array = {}};
  const record::RunState& records = own.records;
  const auto last = run.last_attempt();
  if (last.ok() && is_array(*last) && records.state == State::queued) {
    own.array = look_at_tasks(run, *last);
    return own;
  }
  const bool may_be_ended = records.state != State::done && records.state != State::created;
  if (records.scheduler_job.empty() || !may_be_ended) return own;
  if (!last.ok()) return own;
  own.was_submitted = was_submitted(run);
  const auto ending = observe::batch_ending(run, *last, records.scheduler_job);
  if (!ending) return own;
  if (ending->state == JobState::out_of_memory) {
    // While its supervisor lives it is about to say which rank it was.
    if (records.state == State::running) return own;
    own.figures = ending->figures;
  }
  // An attempt before this one may have been ended, too. Slurm writes whole seconds.
  const double begin = std::max(records.submitted, records.last_started);
  if (ending->time && *ending->time < begin - 1) return own;
  // A run that had ended before its job was ended keeps its own ending.
  if (ending->time && records.ended > 0 && records.ended < *ending->time - 1) return own;
  own.ending = ending->state;
  return own;
}

bool wants_scheduler(const OwnWord& own) {
  if (own.records.scheduler_job.empty() && !own.records.is_submitting) return false;
  if (own.array) return !own.array->has_ended();
  if (may_go_on(own)) return true;
  if (has_own_ending(own)) return false;
  return own.ending != JobState::cancelled && own.ending != JobState::timeout &&
         own.ending != JobState::out_of_memory;
}

namespace {

// What the run says of itself, before the scheduler is heard.
RunLife judge_own(const OwnWord& own) {
  const record::RunState& records = own.records;
  RunLife run{.life = life_of(records.state),
              .note = records.reason,
              .scheduler_job = records.scheduler_job,
              .nodes = "",
              .records = records,
              .array = {}};
  if (records.state == State::stopped && records.is_cancelled) {
    run.life = Life::cancelled;
    if (was_interrupted(records)) run.note = "";
  }
  if (record::is_out_of_time(records.state, records.exit_code)) run.life = Life::timeout;
  if (names_memory(records)) run.life = Life::out_of_memory;
  if (own.ending && !has_own_ending(own)) {
    run.life = ending_of(*own.ending).value_or(Life::queued);
    run.note = run.life == Life::timeout ? std::string(kTimeIsOver) : "";
    if (run.life == Life::out_of_memory) run.note = memory_note(own);
  }
  return run;
}

void judge_unanswered(const record::RunState& records, const Status& problem, RunLife& run) {
  if (records.state == State::queued) {
    run.life = Life::unknown;
    run.note = format("{}; {}",
                      records.scheduler_job.empty() ? "submitted, job not known"
                                                    : format("submitted as job {}", records.scheduler_job),
                      problem.message());
  } else if (run.life == Life::lost || run.life == Life::running) {
    run.note += format("{}{}", run.note.empty() ? "" : "; ", problem.message());
  }
}

// Between two attempts the scheduler knows the job of the next one.
void judge_next_attempt(const OwnWord& own, const slurm::JobFacts& job, double now, RunLife& run) {
  const record::RunState& records = own.records;
  if (slurm::is_over(job.state)) return;
  const std::string ended = run.note.empty() ? std::string(to_text(run.life)) : run.note;
  run.life = Life::queued;
  const std::string why = job.state == JobState::pending ? waiting_note(job, now) : "";
  const std::string what = records.links > 0
                               ? format("link {} of {} comes next", records.link + 1, records.links)
                               : "may be started again";
  run.note = format("{}{}{}; the last one: {}", what, why.empty() ? "" : ", ", why, ended);
}

}  // namespace

RunLife judge_life(const OwnWord& own, const SchedulerWord& word, double now) {
  if (own.array) return judge_array(own, word, now);
  const record::RunState& records = own.records;
  RunLife run = judge_own(own);
  switch (word.kind) {
    case SchedulerWord::Kind::not_asked:
      break;
    case SchedulerWord::Kind::no_answer:
      judge_unanswered(records, word.problem, run);
      break;
    case SchedulerWord::Kind::not_known:
      judge_unknown_job(own, now, run);
      break;
    case SchedulerWord::Kind::known:
      judge_known(own, word.job, now, run);
      if (may_go_on(own)) judge_next_attempt(own, word.job, now, run);
      break;
  }
  // All links of a chain are one job to those who end it or look it up.
  if (records.links > 1) run.scheduler_job = slurm::submitted_job(run.scheduler_job);
  const bool is_given_up = records.has_no_next && records.state != State::done && !records.is_cancelled;
  if (is_over(run.life) && is_given_up && run.note.find(records.no_next_reason) == std::string::npos)
    run.note += format("{}{}", run.note.empty() ? "" : "; ", records.no_next_reason);
  return run;
}

}  // namespace stoker::launch
