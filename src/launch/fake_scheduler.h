// A scheduler for tests: takes jobs, says what it is told to say, counts the questions. Belongs to one
// thread.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

class FakeScheduler final : public slurm::Scheduler {
 public:
  Result<std::string> submit(const Path& script, Deadline) override {
    ++questions;
    if (!problem.ok()) return problem;
    slurm::JobFacts job;
    job.id = std::to_string(100 + listed.jobs.size());
    job.state = slurm::JobState::pending;
    job.state_text = "PENDING";
    const auto text = read_file(script);
    if (text.ok()) {
      const std::size_t begin = text->find("--comment=") + 10;
      job.comment = text->substr(begin, text->find('\n', begin) - begin);
    }
    listed.jobs.push_back(job);
    if (!answer.ok()) return answer;
    return job.id;
  }
  Result<slurm::JobList> jobs(Deadline) override {
    ++questions;
    if (!problem.ok()) return problem;
    return listed;
  }
  Result<slurm::JobList> find(std::span<const std::string> ids, Deadline) override {
    ++questions;
    if (!problem.ok()) return problem;
    slurm::JobList found;
    for (const slurm::JobFacts& job : accounted.jobs) {
      if (std::find(ids.begin(), ids.end(), job.id) != ids.end()) found.jobs.push_back(job);
    }
    return found;
  }
  Status cancel(std::string_view id, Deadline) override {
    ++questions;
    cancelled_ids.emplace_back(id);
    return problem;
  }
  Status cancel_step(std::string_view, std::string_view, Deadline) override { return problem; }

  slurm::JobList listed;     ///< what the controller knows
  slurm::JobList accounted;  ///< what accounting knows
  Status problem;            ///< it cannot be asked
  Status answer;             ///< it takes a job, and this comes back in place of the id
  int questions = 0;
  std::vector<std::string> cancelled_ids;
};

}  // namespace stoker::launch
