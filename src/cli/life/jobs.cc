#include "cli/life/jobs.h"

#include <algorithm>

#include "base/json/json.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

using launch::JobLife;
using launch::Life;
using Json = nlohmann::ordered_json;

// Listed tasks of an array.
constexpr std::size_t kMaxRows = 20;

std::optional<double> elapsed_of(const JobLife& job) {
  const bool has_begun = job.life != Life::queued && job.facts.start;
  if (!has_begun) return std::nullopt;
  const bool is_over = launch::is_over(job.life) && job.facts.end;
  const double end = is_over ? *job.facts.end : unix_seconds(RealClock().wall());
  return std::max(0.0, end - *job.facts.start);
}

std::vector<std::string> row_of(const JobLife& job) {
  const auto elapsed = elapsed_of(job);
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : printable(text); };
  std::string note = job.note;
  const std::string doubt = doubt_text(job.doubts);
  if (!doubt.empty()) note += (note.empty() ? "" : "; ") + doubt;
  return {job.facts.id,
          std::string(to_text(job.life)),
          or_dash(job.facts.name),
          or_dash(job.facts.user),
          or_dash(job.facts.nodes),
          elapsed ? clock_text(*elapsed) : "-",
          note};
}

// Done and pending tasks are only counted.
bool is_listed(const JobLife& job) { return job.life != Life::done && job.life != Life::queued; }

Json to_json(const std::vector<observe::SuspectLine>& doubts) {
  Json list = Json::array();
  for (const observe::SuspectLine& doubt : doubts)
    list.push_back({{"file", doubt.file.string()}, {"line", doubt.line}, {"text", doubt.text}});
  return list;
}

Json to_json(const JobLife& job) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"job", job.facts.id},
          {"name", job.facts.name},
          {"state", std::string(to_text(job.life))},
          {"reason", job.note},
          {"exit_code", or_null(job.exit_code)},
          {"user", text_or_null(job.facts.user)},
          {"nodes", text_or_null(job.facts.nodes)},
          {"elapsed_s", or_null(elapsed_of(job))},
          {"log", text_or_null(job.facts.log.string())},
          {"doubts", to_json(job.doubts)}};
}

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return format("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

Result<Target> find_target(const RunChoice& choice) {
  auto run = find_run(choice);
  if (run.ok()) return Target{*std::move(run), "", {}};
  const bool may_be_job = run.error().code() == Code::not_found && slurm::is_job_id(choice.run);
  if (!may_be_job) return std::move(run).error();
  return Target{std::nullopt, choice.run, run.error()};
}

Result<std::vector<JobLife>> query_jobs(const Target& target, slurm::SlurmCommands& scheduler) {
  auto jobs = launch::query_job_lives(target.job, scheduler, Deadline::after(kSchedulerTimeout));
  const bool has_no_slurm =
      !jobs.ok() && jobs.error().message().find("program not found in PATH") != std::string::npos;
  if (has_no_slurm) return target.no_run;
  return jobs;
}

std::string name_of(const Target& target, const std::vector<JobLife>& jobs) {
  return jobs.size() == 1 ? "job " + target.job
                          : format("array {} ({} tasks)", target.job, grouped(jobs.size()));
}

std::string summary_text(const std::vector<JobLife>& jobs) {
  if (jobs.size() != 1) return count_lives(jobs);
  const JobLife& job = jobs.front();
  std::string text(to_text(job.life));
  if (job.life == Life::running && !job.facts.nodes.empty()) text += " on " + printable(job.facts.nodes);
  return job.note.empty() ? text : format("{} ({})", text, job.note);
}

std::string doubt_text(const std::vector<observe::SuspectLine>& doubts) {
  if (doubts.empty()) return "";
  const observe::SuspectLine& first = doubts.front();
  return format("{}:{} contains a failure: {}", first.file.filename(), first.line, first.text);
}

void print_jobs(const Target& target, const std::vector<JobLife>& jobs, Output& out) {
  std::vector<std::vector<std::string>> rows;
  std::size_t left_out = 0;
  for (const JobLife& job : jobs) {
    if (jobs.size() > 1 && !is_listed(job)) continue;
    if (rows.size() < kMaxRows) {
      rows.push_back(row_of(job));
    } else {
      ++left_out;
    }
  }
  if (jobs.size() > 1) out.line("{}: {}", name_of(target, jobs), summary_text(jobs));
  if (!rows.empty()) out.table({"JOB", "STATE", "NAME", "USER", "NODES", "ELAPSED", "NOTE"}, rows);
  if (left_out > 0) out.line("... and {} more not done", grouped(left_out));
}

std::string json_of(const std::vector<observe::SuspectLine>& doubts) { return json_text(to_json(doubts)); }

std::string json_of(const std::vector<JobLife>& jobs) {
  Json list = Json::array();
  for (const JobLife& job : jobs) list.push_back(to_json(job));
  return json_text(list);
}

std::string json_of(const slurm::SlurmCommands& scheduler) {
  const slurm::CallRateLimiter& rate_limiter = scheduler.rate_limiter();
  return json_text(nlohmann::ordered_json{{"calls", scheduler.calls().count},
                                          {"seconds", Seconds(scheduler.calls().spent).count()},
                                          {"per_s", rate_limiter.per_second()},
                                          {"left", static_cast<std::int64_t>(rate_limiter.left())}});
}

}  // namespace stoker::cli
