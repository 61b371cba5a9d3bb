#include "launch/status/life.h"

#include <algorithm>
#include <csignal>

#include "base/exit_code.h"
#include "launch/state/history.h"
#include "launch/status/array_life.h"
#include "launch/status/predecessors.h"
#include "observe/job_termination.h"
#include "slurm/queue/job_table.h"

namespace stoker::launch {
namespace {

using record::State;
using slurm::JobState;

// sbatch may still wait for the controller.
constexpr double kSubmittingSeconds = 90;

constexpr std::string_view kTimeLimitReached = "reached its time limit";

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

// The supervisor of the ranks detects a cgroup limit where cgroups exist.
bool is_out_of_memory(const record::RunState& records) {
  return records.state == State::failed && records.reason.find(", out of memory") != std::string::npos;
}

bool was_interrupted(const record::RunState& records) {
  return records.state == State::stopped && records.exit_code.value_or(0) > 128;
}

// Whether the run recorded an ending, which is more precise than the scheduler's. Failures after Slurm began
// to end the job (killed ranks, broken connections) do not count.
bool has_own_ending(const RecordedStatus& own) {
  const record::RunState& records = own.records;
  if (records.state == State::done || records.exit_code == exit_code::kStoppedAfterCheckpoint) return true;
  if (own.ending) return false;
  // A node failure kills the ranks first, and may leave their supervisor time to record it. Slurm then
  // requeues the job.
  if (records.state == State::failed && records.is_loss && own.was_submitted) return false;
  return records.state == State::failed || (records.state == State::stopped && !was_interrupted(records));
}

// A preemption reached the ranks first, or the run noticed a node failure before Slurm did: the job is
// requeued.
bool looks_externally_ended(const record::RunState& records) {
  return records.state == State::failed &&
         (records.exit_code == 128 + SIGTERM ||
          records.reason.find("the node or its link is down") != std::string::npos);
}

// The last attempt has ended, and its records allow an automatic restart. Slurm does not restart a job that
// it ended permanently.
bool may_continue(const RecordedStatus& own) {
  const record::RunState& records = own.records;
  const bool is_over =
      records.state == State::stopped || records.state == State::failed || records.state == State::lost;
  const bool is_final = own.ending == JobState::timeout || own.ending == JobState::cancelled ||
                        own.ending == JobState::out_of_memory;
  const bool has_more =
      records.link < records.links || records.may_restart || (!is_final && looks_externally_ended(records));
  return is_over && has_more && !records.has_no_next && !records.is_cancelled;
}

std::string describe_pending_reason(std::string_view reason) {
  const std::string_view words = slurm::reason_text(reason);
  return printable(reason) + (words.empty() ? "" : format(": {}", words));
}

// Describes how the job ended by the scheduler.
std::string ending_note(const slurm::JobInfo& job, const record::RunState& records, Life life) {
  const std::string id = records.scheduler_job.empty() ? job.id : records.scheduler_job;
  switch (life) {
    case Life::timeout:
      return std::string(kTimeLimitReached);
    case Life::cancelled:
      return job.state_text.find(" by ") == std::string::npos
                 ? ""
                 : "by user " + printable(job.state_text.substr(job.state_text.find(" by ") + 4));
    case Life::failed:
      if (records.started == 0 || records.state == State::queued) {
        return format("job {} ended{} before a rank started: its log is slurm.log in the attempt's folder",
                      id, job.exit_code ? format(" with exit code {}", *job.exit_code) : "");
      }
      return format("job {} is {}, but its supervisor recorded no ending", id, printable(job.state_text));
    default:
      return format("job {}: {}", id, printable(job.state_text));
  }
}

// Slurm kills the whole step: a rank whose connection broke first is not the one that took too much.
std::string memory_note(const RecordedStatus& own) {
  const std::string took = own.figures.empty() ? "" : "took " + own.figures;
  const bool is_effect = own.records.reason.find(" was lost: ") != std::string::npos;
  if (is_effect || own.records.reason.empty()) return took;
  return took + (took.empty() ? "" : "; ") + own.records.reason;
}

void judge_known(const RecordedStatus& own, const slurm::JobInfo& job, double now, RunLife& run) {
  const record::RunState& records = own.records;
  run.nodes = job.nodes;
  if (run.scheduler_job.empty()) run.scheduler_job = job.id;
  const std::optional<Life> ending = ending_of(job.state);
  if (has_own_ending(own)) return;
  const bool is_lost_rank = records.state == State::failed && !own.ending;
  if (ending == Life::failed && is_lost_rank) return;  // its own record is more precise
  if (ending) {
    run.life = *ending;
    run.note = ending_note(job, records, run.life);
  } else if (job.state == JobState::pending) {
    run.life = Life::queued;
    run.note = waiting_note(job, now);
    if (records.started > 0 && records.state != State::queued)
      run.note = format("{}{}requeued by Slurm", run.note, run.note.empty() ? "" : ", ");
  } else if (own.ending && job.state != JobState::running) {
    // Its processes are being ended. A preempted job, or one that lost a node, is requeued.
    if (run.life != Life::preempted && run.life != Life::node_failed && run.life != Life::queued) return;
    run.life = Life::queued;
    run.note = "its processes are being ended, then Slurm requeues it";
  } else {
    run.note = is_lost_rank ? records.reason + "; its job has not ended, a node may be down" : "";
    if (records.state == State::lost) {
      run.note = "no heartbeat from its supervisor, Slurm state: " + std::string(to_text(job.state));
    } else if (records.state == State::queued) {
      run.note = "has its nodes, not started yet";
    }
    run.life = Life::running;
  }
}

void judge_unknown_job(const RecordedStatus& own, double now, RunLife& run) {
  const record::RunState& records = own.records;
  if (has_own_ending(own) || own.ending || records.state == State::running) return;
  if (records.is_submitting) {
    if (now - records.submitted < kSubmittingSeconds) {
      run.note = "being submitted";
      return;
    }
    run.life = Life::failed;
    run.note = "its submission was interrupted before it reached the queue";
  } else if (records.is_cancelled) {
    run.life = Life::cancelled;
    run.note = "";
  } else if (records.state == State::queued) {
    run.life = Life::unknown;
    run.note = format("job {} is unknown to Slurm, and the run never started", records.scheduler_job);
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

std::string to_text(const RunLife& run) {
  std::string text(to_text(run.life));
  if (run.life == Life::running && !run.nodes.empty()) text += " on " + printable(run.nodes);
  return run.note.empty() ? text : format("{} ({})", text, run.note);
}

bool is_over(Life life) {
  return life != Life::created && life != Life::queued && life != Life::running && life != Life::unknown;
}

std::string waiting_note(const slurm::JobInfo& job, double now) {
  std::string note = describe_pending_reason(job.reason);
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
      return exit_code::kOk;
    case Life::timeout:
      return own == exit_code::kStoppedAfterCheckpoint ? own : exit_code::kTimeout;
    case Life::cancelled:
      return own == exit_code::kStoppedAfterCheckpoint ? own : exit_code::kInterrupted;
    case Life::out_of_memory:
      return exit_code::kOutOfMemory;
    case Life::node_failed:
    case Life::preempted:
    case Life::lost:
      return exit_code::kUnavailable;
    default:
      return own != exit_code::kOk ? own : exit_code::kFailed;
  }
}

int exit_code_of(const RunLife& run) { return exit_code_of(run.life, run.records.exit_code); }

RecordedStatus read_recorded_status(const record::RunFolder& run, double now) {
  RecordedStatus own{.records = record::derive_state(run, {.now = now}),
                     .ending = {},
                     .figures = "",
                     .array = {},
                     .problem = {}};
  const record::RunState& records = own.records;
  const auto last = run.last_attempt();
  if (last.ok() && is_array(*last) && records.state == State::queued) {
    const auto array = read_array_file(*last);
    if (array.ok())
      own.array = read_array_state(run, *last, *array);
    else
      own.problem = array.status();
    return own;
  }
  const bool may_be_ended = records.state != State::done && records.state != State::created;
  if (records.scheduler_job.empty() || !may_be_ended) return own;
  if (!last.ok()) return own;
  own.was_submitted = was_submitted(run);
  const auto ending = observe::job_termination(run, *last, records.scheduler_job);
  if (!ending) return own;
  if (ending->state == JobState::out_of_memory) {
    // A live supervisor will soon record which rank it was.
    if (records.state == State::running) return own;
    own.figures = ending->figures;
  }
  // Slurm may have ended an earlier attempt. Slurm's timestamps are whole seconds.
  const double begin = std::max(records.submitted, records.last_started);
  if (ending->time && *ending->time < begin - 1) return own;
  if (!observe::explains_end(*ending, records.ended, records.exit_code)) return own;
  own.ending = ending->state;
  return own;
}

bool needs_scheduler(const RecordedStatus& own) {
  if (!own.problem.ok()) return false;
  if (own.records.scheduler_job.empty() && !own.records.is_submitting) return false;
  if (own.array) return !own.array->has_ended();
  if (may_continue(own)) return true;
  if (has_own_ending(own)) return false;
  return own.ending != JobState::cancelled && own.ending != JobState::timeout &&
         own.ending != JobState::out_of_memory;
}

namespace {

// The state by the records only.
RunLife judge_own(const RecordedStatus& own) {
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
  if (is_out_of_memory(records)) run.life = Life::out_of_memory;
  if (own.ending && !has_own_ending(own)) {
    run.life = ending_of(*own.ending).value_or(Life::queued);
    run.note = run.life == Life::timeout ? std::string(kTimeLimitReached) : "";
    if (run.life == Life::out_of_memory) run.note = memory_note(own);
  }
  return run;
}

void judge_unanswered(const record::RunState& records, const Status& problem, RunLife& run) {
  if (records.state == State::queued) {
    run.life = Life::unknown;
    run.note = format("{}; {}",
                      records.scheduler_job.empty() ? "submitted, job unknown"
                                                    : format("submitted as job {}", records.scheduler_job),
                      problem.message());
  } else if (run.life == Life::lost || run.life == Life::running) {
    run.note += format("{}{}", run.note.empty() ? "" : "; ", problem.message());
  }
}

// Between two attempts, the scheduler knows the job of the next one.
void judge_next_attempt(const RecordedStatus& own, const slurm::JobInfo& job, double now, RunLife& run) {
  const record::RunState& records = own.records;
  if (slurm::is_over(job.state)) return;
  const std::string ended = run.note.empty() ? std::string(to_text(run.life)) : run.note;
  run.life = Life::queued;
  const std::string why = job.state == JobState::pending ? waiting_note(job, now) : "";
  const std::string what = records.links > 0
                               ? format("link {} of {} is next", records.link + 1, records.links)
                               : "may be requeued";
  run.note = format("{}{}{}; last attempt: {}", what, why.empty() ? "" : ", ", why, ended);
}

}  // namespace

RunLife judge_life(const RecordedStatus& own, const SchedulerStatus& status, double now) {
  if (own.array) return judge_array(own, status, now);
  const record::RunState& records = own.records;
  RunLife run = judge_own(own);
  if (!own.problem.ok()) {
    run.life = Life::unknown;
    run.note = own.problem.message();
    return run;
  }
  switch (status.kind) {
    case SchedulerStatus::Kind::not_asked:
      break;
    case SchedulerStatus::Kind::no_answer:
      judge_unanswered(records, status.problem, run);
      break;
    case SchedulerStatus::Kind::not_known:
      judge_unknown_job(own, now, run);
      break;
    case SchedulerStatus::Kind::known:
      judge_known(own, status.job, now, run);
      if (may_continue(own)) judge_next_attempt(own, status.job, now, run);
      break;
  }
  // For users, all links of a chain are one job.
  if (records.links > 1) run.scheduler_job = slurm::base_job_id(run.scheduler_job);
  const bool is_given_up = records.has_no_next && records.state != State::done && !records.is_cancelled;
  if (is_over(run.life) && is_given_up && run.note.find(records.no_next_reason) == std::string::npos)
    run.note += format("{}{}", run.note.empty() ? "" : "; ", records.no_next_reason);
  if (is_over(run.life) && !records.lost_output.empty())
    run.note += format("{}{}", run.note.empty() ? "" : "; ", records.lost_output);
  return run;
}

namespace {

// An array or chain is listed as its tasks.
bool is_same_job(const RecordedStatus& own, const slurm::JobInfo& job) {
  const record::RunState& records = own.records;
  const std::string_view id = slurm::base_job_id(job.id);
  if (own.array) return std::find(records.jobs.begin(), records.jobs.end(), id) != records.jobs.end();
  return id == slurm::base_job_id(records.scheduler_job);
}

// Finds the run's job in the list by id. Also compares the comment if the listing has one, because a rebuilt
// cluster reuses ids. Prefers a running job, then a pending one.
const slurm::JobInfo* job_of(const RecordedStatus& own, const slurm::JobList& list,
                             const slurm::JobIndex& index) {
  const record::RunState& records = own.records;
  if (records.scheduler_job.empty())
    return records.comment.empty() ? nullptr : index.by_comment(records.comment);
  const auto may_be_it = [&](const slurm::JobInfo& job) {
    return job.comment.empty() || records.comment.empty() || job.comment == records.comment ||
           !job.comment.starts_with("stoker:");
  };
  if (!own.array && records.links < 2) {
    const slurm::JobInfo* job = index.by_id(records.scheduler_job);
    return job != nullptr && may_be_it(*job) ? job : nullptr;
  }
  const slurm::JobInfo* best = nullptr;
  const auto weight = [](const slurm::JobInfo& job) {
    return slurm::is_over(job.state) ? 0 : job.state == slurm::JobState::pending ? 1 : 2;
  };
  for (const slurm::JobInfo& job : list.jobs) {
    if (!is_same_job(own, job) || !may_be_it(job)) continue;
    if (best == nullptr || weight(job) > weight(*best)) best = &job;
  }
  return best;
}

std::vector<std::string> job_ids_of(const RecordedStatus& own) {
  const record::RunState& records = own.records;
  if (own.array) return records.jobs;
  return {std::string(records.links > 1 ? slurm::base_job_id(records.scheduler_job) : records.scheduler_job)};
}

void poll_scheduler(std::span<const RecordedStatus> owns, std::vector<SchedulerStatus>& statuses,
                    slurm::Scheduler& scheduler, Deadline deadline) {
  const auto set_all = [&](SchedulerStatus::Kind kind, const Status& problem) {
    for (std::size_t i = 0; i < owns.size(); ++i) {
      const bool is_open = statuses[i].kind == SchedulerStatus::Kind::not_asked && needs_scheduler(owns[i]);
      if (is_open) statuses[i] = {.kind = kind, .job = {}, .problem = problem};
    }
  };
  const auto listed = scheduler.jobs(deadline);
  if (!listed.ok()) return set_all(SchedulerStatus::Kind::no_answer, listed.error());
  const slurm::JobIndex index(*listed);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < owns.size(); ++i) {
    if (!needs_scheduler(owns[i])) continue;
    if (const slurm::JobInfo* job = job_of(owns[i], *listed, index)) {
      statuses[i] = {.kind = SchedulerStatus::Kind::known, .job = *job, .problem = {}};
    } else if (slurm::is_job_id(owns[i].records.scheduler_job)) {
      for (std::string& id : job_ids_of(owns[i])) missing.push_back(std::move(id));
    }
  }
  const auto found =
      missing.empty() ? Result<slurm::JobList>(slurm::JobList{}) : scheduler.find(missing, deadline);
  const slurm::JobList none;
  const slurm::JobIndex known(found.ok() ? *found : none);
  for (std::size_t i = 0; found.ok() && i < owns.size(); ++i) {
    if (statuses[i].kind != SchedulerStatus::Kind::not_asked || owns[i].records.scheduler_job.empty())
      continue;
    if (const slurm::JobInfo* job = job_of(owns[i], *found, known))
      statuses[i] = {.kind = SchedulerStatus::Kind::known, .job = *job, .problem = {}};
  }
  set_all(found.ok() ? SchedulerStatus::Kind::not_known : SchedulerStatus::Kind::no_answer, found.status());
}

// A predecessor may explain why the run has not started.
void add_predecessors(RunLife& run) {
  const record::RunState& records = run.records;
  if (records.after.empty() || records.started > 0) return;
  const bool is_open = run.life == Life::queued || run.life == Life::unknown;
  if (!is_open && run.life != Life::cancelled && run.life != Life::failed) return;
  if (records.is_cancelled) return;
  const std::string why = describe_predecessors(records.after);
  if (!why.empty() && run.note.find(why) == std::string::npos) run.note = why;
}

}  // namespace

std::vector<RunLife> query_life(std::span<const record::RunFolder> runs, slurm::Scheduler& scheduler,
                                Deadline deadline) {
  const double now = unix_seconds(RealClock().wall());
  std::vector<RecordedStatus> owns;
  for (const record::RunFolder& run : runs) owns.push_back(read_recorded_status(run, now));
  std::vector<SchedulerStatus> statuses(owns.size());
  if (std::any_of(owns.begin(), owns.end(), needs_scheduler))
    poll_scheduler(owns, statuses, scheduler, deadline);
  std::vector<RunLife> lives;
  for (std::size_t i = 0; i < owns.size(); ++i) {
    lives.push_back(judge_life(owns[i], statuses[i], now));
    add_predecessors(lives.back());
  }
  return lives;
}

RunLife query_life(const record::RunFolder& run, slurm::Scheduler& scheduler, Deadline deadline) {
  return query_life(std::span(&run, 1), scheduler, deadline).front();
}

}  // namespace stoker::launch
