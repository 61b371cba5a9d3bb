#include "cli/checkpoint/directory.h"

#include "base/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"
#include "job/job.h"

namespace stoker::cli {

Result<Path> find_checkpoint_directory(const RunChoice& choice) {
  const Path folder = choice.run;
  if (folder_exists(folder) && !path_exists(folder / "run.json")) return folder;
  STOKER_ASSIGN_OR_RETURN(run, find_run(choice));
  STOKER_ASSIGN_OR_RETURN(attempt, run.last_attempt());
  STOKER_ASSIGN_OR_RETURN(job, job::load(attempt.job()));
  const Path directory = checkpoint::directory_of_run(job.checkpoint.directory, run.folder());
  if (folder_exists(directory)) return directory;
  return not_found("run {}: no checkpoint yet ({})", run.id(), printable(directory.string()));
}

std::optional<Path> explicit_step_folder(const RunChoice& choice) {
  const Path named = Path(choice.run).lexically_normal();
  const Path name = named.has_filename() ? named.filename() : named.parent_path().filename();
  if (checkpoint::step_of_folder(name.string()) || path_exists(named / checkpoint::kManifestName))
    return named;
  return std::nullopt;
}

Result<Path> find_step(const RunChoice& choice) {
  if (const auto named = explicit_step_folder(choice)) return *named;
  STOKER_ASSIGN_OR_RETURN(directory, find_checkpoint_directory(choice));
  return checkpoint::latest_valid(directory);
}

void note_skipped_steps(const std::vector<checkpoint::SkippedStep>& steps, Output& out) {
  for (const checkpoint::SkippedStep& step : steps)
    out.note("skipped {}: {}", printable(step.folder.filename().string()), step.why);
}

}  // namespace stoker::cli
