#include <algorithm>

#include "launch/life.h"
#include "launch/next/after.h"
#include "slurm/queue/job_table.h"

namespace stoker::launch {
namespace {

// A job that was submitted as several is listed as its tasks.
bool is_same_job(const OwnWord& own, const slurm::JobFacts& job) {
  const record::RunState& records = own.records;
  const std::string_view id = slurm::submitted_job(job.id);
  if (own.array) return std::find(records.jobs.begin(), records.jobs.end(), id) != records.jobs.end();
  return id == slurm::submitted_job(records.scheduler_job);
}

// The run's job among those listed: by id, and by the comment too where the listing has one, since ids are
// used again after a cluster was set up anew. Of several jobs one that runs, else one that waits.
const slurm::JobFacts* job_of(const OwnWord& own, const slurm::JobList& list, const slurm::JobIndex& index) {
  const record::RunState& records = own.records;
  if (records.scheduler_job.empty())
    return records.comment.empty() ? nullptr : index.by_comment(records.comment);
  const auto may_be_it = [&](const slurm::JobFacts& job) {
    return job.comment.empty() || records.comment.empty() || job.comment == records.comment ||
           !job.comment.starts_with("stoker:");
  };
  if (!own.array && records.links < 2) {
    const slurm::JobFacts* job = index.by_id(records.scheduler_job);
    return job != nullptr && may_be_it(*job) ? job : nullptr;
  }
  const slurm::JobFacts* best = nullptr;
  const auto weight = [](const slurm::JobFacts& job) {
    return slurm::is_over(job.state) ? 0 : job.state == slurm::JobState::pending ? 1 : 2;
  };
  for (const slurm::JobFacts& job : list.jobs) {
    if (!is_same_job(own, job) || !may_be_it(job)) continue;
    if (best == nullptr || weight(job) > weight(*best)) best = &job;
  }
  return best;
}

std::vector<std::string> asked_for(const OwnWord& own) {
  const record::RunState& records = own.records;
  if (own.array) return records.jobs;
  return {
      std::string(records.links > 1 ? slurm::submitted_job(records.scheduler_job) : records.scheduler_job)};
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
  const slurm::JobIndex index(*listed);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < owns.size(); ++i) {
    if (!wants_scheduler(owns[i])) continue;
    if (const slurm::JobFacts* job = job_of(owns[i], *listed, index)) {
      words[i] = {.kind = SchedulerWord::Kind::known, .job = *job, .problem = {}};
    } else if (slurm::is_job_id(owns[i].records.scheduler_job)) {
      for (std::string& id : asked_for(owns[i])) missing.push_back(std::move(id));
    }
  }
  const auto found =
      missing.empty() ? Result<slurm::JobList>(slurm::JobList{}) : scheduler.find(missing, deadline);
  const slurm::JobList none;
  const slurm::JobIndex known(found.ok() ? *found : none);
  for (std::size_t i = 0; found.ok() && i < owns.size(); ++i) {
    if (words[i].kind != SchedulerWord::Kind::not_asked || owns[i].records.scheduler_job.empty()) continue;
    if (const slurm::JobFacts* job = job_of(owns[i], *found, known))
      words[i] = {.kind = SchedulerWord::Kind::known, .job = *job, .problem = {}};
  }
  set_all(found.ok() ? SchedulerWord::Kind::not_known : SchedulerWord::Kind::no_answer, found.status());
}

// What keeps a run from beginning may be another run.
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

std::vector<RunLife> look_at(std::span<const record::RunFolder> runs, slurm::Scheduler& scheduler,
                             Deadline deadline) {
  const double now = unix_seconds(RealClock().wall());
  std::vector<OwnWord> owns;
  for (const record::RunFolder& run : runs) owns.push_back(own_word(run, now));
  std::vector<SchedulerWord> words(owns.size());
  if (std::any_of(owns.begin(), owns.end(), wants_scheduler)) hear(owns, words, scheduler, deadline);
  std::vector<RunLife> lives;
  for (std::size_t i = 0; i < owns.size(); ++i) {
    lives.push_back(judge_life(owns[i], words[i], now));
    add_predecessors(lives.back());
  }
  return lives;
}

RunLife look_at(const record::RunFolder& run, slurm::Scheduler& scheduler, Deadline deadline) {
  return look_at(std::span(&run, 1), scheduler, deadline).front();
}

}  // namespace stoker::launch
