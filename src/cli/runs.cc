#include "cli/runs.h"

#include <filesystem>

#include "base/process.h"

namespace stoker::cli {

void add_run_choice(Arguments& arguments, RunChoice* choice) {
  arguments.optional_positional("RUN", &choice->run, kRunHelp);
  arguments.option("--runs", &choice->runs, "DIR", "Folder with the runs (the job's record.directory)");
}

slurm::SlurmCommands make_scheduler() { return slurm::SlurmCommands(current_environment()); }

std::string display_path(const Path& path) {
  const Path relative = path.lexically_proximate(std::filesystem::current_path());
  return relative.string().starts_with("..") ? path.string() : relative.string();
}

std::string run_reference(const record::RunFolder& run) {
  return display_path(run.folder().parent_path()) == "runs" ? "last"
                                                            : shell_quote(display_path(run.folder()));
}

Result<record::RunFolder> find_run(const RunChoice& choice) {
  return record::RunFolder::find(choice.runs, choice.run);
}

Result<record::RunFolder> find_resumable_run(const RunChoice& choice) {
  auto run = find_run(choice);
  const bool may_be_job = !run.ok() && run.error().code() == Code::not_found && slurm::is_job_id(choice.run);
  if (!may_be_job) return run;
  return not_found("job {}: no run in {}/ has this job; only runs can be resumed or rerun", choice.run,
                   choice.runs)
      .cure("stoker status {}", choice.run);
}

Result<record::Attempt> find_attempt(const record::RunFolder& run, std::int64_t number) {
  if (number == 0) return run.last_attempt();
  STOKER_ASSIGN_OR_RETURN(attempts, run.attempts());
  for (const record::Attempt& attempt : attempts) {
    if (attempt.number() == number) return attempt;
  }
  if (attempts.empty()) return not_found("run {}: no attempt yet", run.id());
  return not_found("run {}: no attempt {} (1 to {} exist)", run.id(), number, attempts.back().number());
}

}  // namespace stoker::cli
