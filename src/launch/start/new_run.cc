#include "launch/start/new_run.h"

#include "base/user.h"
#include "base/version.h"
#include "launch/start/container.h"
#include "launch/start/environment.h"
#include "rank/capsule/facts.h"
#include "trainers/find.h"

namespace stoker::launch {
namespace {

constexpr Duration kFindTorchTimeout =
    std::chrono::minutes(2);  // Python starts slowly on a shared filesystem

}  // namespace

Result<RankCommand> rank_command(const job::Job& job, const Path& stoker, const Environment& environment) {
  if (job.command) {
    return RankCommand{
        wrap_in_container(job, wrap_in_node_venv(job.environment, stoker, job.command->arguments)), {}};
  }
  STOKER_ASSIGN_OR_RETURN(trainer,
                          trainers::find_trainer({stoker.parent_path(), job.environment.venv, environment},
                                                 Deadline::after(kFindTorchTimeout)));
  return RankCommand{{trainer.program.string()}, trainer.libraries};
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
