#include "launch/new_run.h"

#include <pwd.h>
#include <unistd.h>

#include "base/version.h"
#include "launch/environment.h"
#include "launch/shell/container.h"
#include "rank/capsule/facts.h"

namespace stoker::launch {

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? std::to_string(::getuid()) : entry->pw_name;
}

Result<std::vector<std::string>> rank_command(const job::Job& job, const Path& stoker) {
  if (job.command) return in_container(job, in_made_venv(job.environment, stoker, job.command->arguments));
  const Path trainer = stoker.parent_path() / "stoker-train";
  if (::access(trainer.c_str(), X_OK) != 0) {
    return not_found("stoker-train: not beside the command in {}", trainer.parent_path())
        .cure("script/build");
  }
  return std::vector<std::string>{trainer.string()};
}

Result<record::RunFolder> make_run_folder(const Request& request, const NewRun& run,
                                          const std::string& yaml) {
  const job::Job& job = request.job;
  record::RunDescription what;
  what.name = job.name;
  what.git = rank::short_commit(job.working_directory);
  what.command = run.command;
  what.job_file = request.job_file;
  what.working_directory = job.working_directory;
  what.typed = request.typed;
  what.world_size = static_cast<int>(job.resources.world_size());
  what.hosts = run.hosts;
  what.user = user_name();
  what.stoker_version = version();
  what.scheduler_job = run.scheduler_job;
  what.params.assign(job.params.begin(), job.params.end());
  return record::RunFolder::create(job.record.directory, what, yaml);
}

}  // namespace stoker::launch
