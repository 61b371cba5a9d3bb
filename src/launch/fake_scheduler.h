// A scheduler for tests: accepts jobs, returns preset answers, counts calls. Belongs to one thread.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

class FakeScheduler final : public slurm::Scheduler {
 public:
  Result<std::string> submit(const Path& script, Deadline) override {
    ++calls;
    if (!problem.ok()) return problem;
    slurm::JobInfo job;
    job.id = std::to_string(100 + listed.jobs.size());
    job.state = slurm::JobState::pending;
    job.state_text = "PENDING";
    const auto text = read_file(script);
    if (text.ok()) {
      const std::size_t begin = text->find("--comment=") + 10;
      job.comment = text->substr(begin, text->find('\n', begin) - begin);
    }
    if (text.ok() && refuse_array && refuse_array(*text))
      return invalid("sbatch: Invalid job array specification");
    listed.jobs.push_back(job);
    if (!answer.ok()) return answer;
    return job.id;
  }
  Result<slurm::JobList> jobs(Deadline) override {
    ++calls;
    if (!problem.ok()) return problem;
    return listed;
  }
  Result<slurm::JobList> find(std::span<const std::string> ids, Deadline) override {
    ++calls;
    if (!problem.ok()) return problem;
    slurm::JobList found;
    for (const slurm::JobInfo& job : accounted.jobs) {
      if (std::find(ids.begin(), ids.end(), job.id) != ids.end()) found.jobs.push_back(job);
    }
    return found;
  }
  Result<slurm::JobList> describe(std::string_view id, Deadline) override {
    ++calls;
    if (!problem.ok()) return problem;
    slurm::JobList found;
    for (const slurm::JobList* list : {&listed, &accounted}) {
      for (const slurm::JobInfo& job : list->jobs) {
        if (job.id == id || job.id.starts_with(std::string(id) + "_")) found.jobs.push_back(job);
      }
      if (!found.jobs.empty()) return found;
    }
    return not_found("job {}: unknown to Slurm", id);
  }
  Status cancel(std::string_view id, Deadline) override {
    ++calls;
    cancelled_ids.emplace_back(id);
    return problem.ok() ? cannot_cancel : problem;
  }
  Status cancel_pending(std::string_view id, Deadline) override {
    ++calls;
    withdrawn_ids.emplace_back(id);
    return problem;
  }
  Status set_array_limit(std::string_view id, std::uint32_t at_once, Deadline) override {
    ++calls;
    array_limits.emplace_back(id, at_once);
    return problem;
  }
  Status requeue(std::string_view id, Deadline) override {
    ++calls;
    requeued_ids.emplace_back(id);
    return problem;
  }
  Result<bool> is_being_preempted(std::string_view, Deadline) override {
    ++calls;
    if (!problem.ok()) return problem;
    return preempts;
  }
  Result<std::int64_t> max_jobs(Deadline) override { return job_limit; }
  Result<std::int64_t> max_array_tasks(Deadline) override {
    ++calls;
    if (!problem.ok()) return problem;
    return array_limit;
  }
  Status cancel_step(std::string_view, std::string_view, Deadline) override { return problem; }

  std::int64_t job_limit = 0;  ///< MaxJobCount; 0: unknown
  slurm::JobList listed;       ///< jobs known to the controller
  slurm::JobList accounted;    ///< jobs known to accounting
  Status problem;              ///< every call fails with it
  Status answer;               ///< submit accepts the job, but returns this instead of the id
  Status cannot_cancel;        ///< cancel fails with it
  int calls = 0;
  std::vector<std::string> cancelled_ids;
  std::vector<std::string> withdrawn_ids;
  std::vector<std::string> requeued_ids;
  std::vector<std::pair<std::string, std::uint32_t>> array_limits;  ///< that were set, with the array's id
  std::int64_t array_limit = 1000;
  bool preempts = false;
  std::function<bool(const std::string& script)> refuse_array;
};

}  // namespace stoker::launch
