#include "cli/checkpoint/directory.h"

#include "base/file.h"
#include "checkpoint/catalog.h"
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

std::optional<Path> step_folder_named(const RunChoice& choice) {
  const Path named = Path(choice.run).lexically_normal();
  const Path name = named.has_filename() ? named.filename() : named.parent_path().filename();
  if (checkpoint::step_of_folder(name.string()) || path_exists(named / checkpoint::kManifestName))
    return named;
  return std::nullopt;
}

Result<Path> find_step(const RunChoice& choice) {
  if (const auto named = step_folder_named(choice)) return *named;
  OK_OR_RETURN(directory, find_checkpoints(choice));
  return checkpoint::latest_valid(directory);
}

void note_passed_over(const std::vector<checkpoint::SkippedStep>& steps, Output& out) {
  for (const checkpoint::SkippedStep& step : steps)
    out.note("passed over {}: {}", printable(step.folder.filename().string()), step.why);
}

}  // namespace stoker::cli
