#include "launch/life.h"

#include <algorithm>

#include "base/file.h"
#include "slurm/script/batch_log.h"

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

// Nothing for a state that is no ending, and for an end that says nothing about the run.
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

bool was_interrupted(const record::RunState& records) {
  return records.state == State::stopped && records.exit_code.value_or(0) > 128;
}

// It has an ending of its own, which says more than the scheduler could. What came after Slurm had begun to
// end the job (ranks killed, connections broken) is no ending of its own.
bool has_own_ending(const OwnWord& own) {
  const record::RunState& records = own.records;
  if (records.state == State::done || records.exit_code == 75) return true;
  if (own.ending) return false;
  return records.state == State::failed || (records.state == State::stopped && !was_interrupted(records));
}

// The last piece of what the batch script of the run's last job printed. A job that Slurm has started again
// goes on in the log of the attempt that was submitted.
std::string batch_log_of(const record::RunFolder& run) {
  constexpr std::uint64_t kPiece = 64 * 1024;
  const auto attempts = run.attempts();
  if (!attempts.ok()) return "";
  for (auto attempt = attempts->rbegin(); attempt != attempts->rend(); ++attempt) {
    const auto log = File::open_read(attempt->batch_log());
    if (!log.ok()) continue;
    const auto size = log->size();
    if (!size.ok()) return "";
    std::string piece(std::min(*size, kPiece), '\0');
    const auto bytes = std::as_writable_bytes(std::span(piece));
    return log->read_at(*size - piece.size(), bytes).ok() ? piece : "";
  }
  return "";
}

std::string waiting_note(const slurm::JobFacts& job, double now) {
  const std::string_view words = slurm::reason_words(job.reason);
  std::string note = printable(job.reason);
  if (!words.empty()) note += format(": {}", words);
  if (job.start && *job.start > now + 60) {
    const auto left = std::chrono::duration_cast<Duration>(Seconds(*job.start - now));
    note += format("{}start likely in {}", note.empty() ? "" : ", ", rounded_duration(left));
  }
  return note;
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

void judge_known(const OwnWord& own, const slurm::JobFacts& job, double now, RunLife& run) {
  const record::RunState& records = own.records;
  run.nodes = job.nodes;
  if (run.scheduler_job.empty()) run.scheduler_job = job.id;
  const std::optional<Life> ending = ending_of(job.state);
  if (has_own_ending(own)) return;
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
    run.note = "";
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

OwnWord own_word(const record::RunFolder& run, double now) {
  OwnWord own{.records = record::derive_state(run, {.now = now}), .ending = std::nullopt};
  const record::RunState& records = own.records;
  const bool may_be_ended = records.state != State::done && records.state != State::created;
  if (records.scheduler_job.empty() || !may_be_ended) return own;
  const auto ending = slurm::last_ending(batch_log_of(run), records.scheduler_job);
  if (!ending) return own;
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
  if (has_own_ending(own)) return false;
  return own.ending != JobState::cancelled && own.ending != JobState::timeout;
}

RunLife judge_life(const OwnWord& own, const SchedulerWord& word, double now) {
  const record::RunState& records = own.records;
  RunLife run{.life = life_of(records.state),
              .note = records.reason,
              .scheduler_job = records.scheduler_job,
              .nodes = "",
              .records = records};
  if (records.state == State::stopped && records.is_cancelled) {
    run.life = Life::cancelled;
    if (was_interrupted(records)) run.note = "";
  }
  // The supervisor ends a run whose time is over with exit code 1.
  const bool is_overtime = records.state == State::stopped && records.exit_code == 1;
  if (is_overtime && !records.scheduler_job.empty()) run.life = Life::timeout;
  if (own.ending && !has_own_ending(own)) {
    run.life = ending_of(*own.ending).value_or(Life::queued);
    run.note = run.life == Life::timeout ? std::string(kTimeIsOver) : "";
  }
  switch (word.kind) {
    case SchedulerWord::Kind::not_asked:
      break;
    case SchedulerWord::Kind::no_answer:
      if (records.state == State::queued) {
        run.life = Life::unknown;
        run.note =
            format("{}; {}",
                   records.scheduler_job.empty() ? "submitted, job not known"
                                                 : format("submitted as job {}", records.scheduler_job),
                   word.problem.message());
      } else if (run.life == Life::lost || run.life == Life::running) {
        run.note += format("{}{}", run.note.empty() ? "" : "; ", word.problem.message());
      }
      break;
    case SchedulerWord::Kind::not_known:
      judge_unknown_job(own, now, run);
      break;
    case SchedulerWord::Kind::known:
      judge_known(own, word.job, now, run);
      break;
  }
  return run;
}

namespace {

// The run's job among those listed: by id, and by the comment too where the listing has one, since ids are
// used again after a cluster was set up anew.
const slurm::JobFacts* job_of(const record::RunState& records, const slurm::JobList& list) {
  for (const slurm::JobFacts& job : list.jobs) {
    const bool is_same_comment = job.comment == records.comment;
    if (records.scheduler_job.empty()) {
      if (is_same_comment && !records.comment.empty()) return &job;
    } else if (job.id == records.scheduler_job) {
      if (job.comment.empty() || records.comment.empty() || is_same_comment ||
          !job.comment.starts_with("stoker:"))
        return &job;
    }
  }
  return nullptr;
}

void hear(std::span<const OwnWord> owns, std::vector<SchedulerWord>& words, slurm::Scheduler& scheduler,
          Deadline deadline) {
  const auto set_all = [&](SchedulerWord::Kind kind, const Status& problem) {
    for (std::size_t i = 0; i < owns.size(); ++i) {
      const bool is_open = words[i].kind == SchedulerWord::Kind::not_asked && wants_scheduler(owns[i]);
      if (is_open) words[i] = {.kind = kind, .job = {}, .problem = problem};
    }
  };
  const auto listed = scheduler.jobs(deadline);
  if (!listed.ok()) return set_all(SchedulerWord::Kind::no_answer, listed.error());
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < owns.size(); ++i) {
    if (!wants_scheduler(owns[i])) continue;
    if (const slurm::JobFacts* job = job_of(owns[i].records, *listed)) {
      words[i] = {.kind = SchedulerWord::Kind::known, .job = *job, .problem = {}};
    } else if (slurm::is_job_id(owns[i].records.scheduler_job)) {
      missing.push_back(owns[i].records.scheduler_job);
    }
  }
  const auto found =
      missing.empty() ? Result<slurm::JobList>(slurm::JobList{}) : scheduler.find(missing, deadline);
  for (std::size_t i = 0; found.ok() && i < owns.size(); ++i) {
    if (words[i].kind != SchedulerWord::Kind::not_asked || owns[i].records.scheduler_job.empty()) continue;
    if (const slurm::JobFacts* job = found->find(owns[i].records.scheduler_job))
      words[i] = {.kind = SchedulerWord::Kind::known, .job = *job, .problem = {}};
  }
  set_all(found.ok() ? SchedulerWord::Kind::not_known : SchedulerWord::Kind::no_answer, found.status());
}

}  // namespace

std::vector<RunLife> look_at(std::span<const record::RunFolder> runs, slurm::Scheduler& scheduler,
                             Deadline deadline) {
  const double now = unix_seconds(RealClock().wall());
  std::vector<OwnWord> owns;
  for (const record::RunFolder& run : runs) owns.push_back(own_word(run, now));
  std::vector<SchedulerWord> words(owns.size());
  if (std::any_of(owns.begin(), owns.end(), wants_scheduler)) hear(owns, words, scheduler, deadline);
  std::vector<RunLife> lives;
  for (std::size_t i = 0; i < owns.size(); ++i) lives.push_back(judge_life(owns[i], words[i], now));
  return lives;
}

RunLife look_at(const record::RunFolder& run, slurm::Scheduler& scheduler, Deadline deadline) {
  return look_at(std::span(&run, 1), scheduler, deadline).front();
}

}  // namespace stoker::launch
