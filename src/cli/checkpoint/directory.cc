#include "cli/checkpoint/directory.h"

#include "base/file.h"
#include "checkpoint/layout.h"
#include "job/job.h"

namespace stoker::cli {

Result<Path> find_checkpoints(const RunChoice& choice) {
  const Path folder = choice.run;
  if (folder_exists(folder) && !path_exists(folder / "run.json")) return folder;
  OK_OR_RETURN(run, find_run(choice));
  OK_OR_RETURN(attempt, run.last_attempt());
  OK_OR_RETURN(job, job::load(attempt.job()));
  const Path directory = checkpoint::directory_of_run(job.checkpoint.directory, run.folder());
  if (folder_exists(directory)) return directory;
  return not_found("run {}: has no checkpoint yet ({})", run.id(), printable(directory.string()));
}

}  // namespace stoker::cli
