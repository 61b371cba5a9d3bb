// `stoker run JOB`: docs/commands/run.md
#include "base/file.h"
#include "cli/running.h"
#include "launch/submit.h"

namespace stoker::cli {

int run(std::span<const std::string> words, Output& out) {
  JobChoice o;
  Arguments arguments("run", "Runs a job here: on this machine, or inside the current Slurm allocation.");
  arguments.positional("JOB", &o.job,
                       "the job file; or the folder of an attempt, as a batch script names it");
  arguments.option("--set", &o.set, "KEY=VALUE", "lays a value over the job file: --set train.epochs=3");
  arguments.flag("--dry-run", &o.dry_run, "show what would be started, and start nothing");
  arguments.example("stoker run job.yaml --set train.epochs=3");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (folder_exists(o.job)) {
    if (!o.set.empty()) return out.fail(invalid("run: --set: {} is an attempt, its job is decided", o.job));
    auto request = launch::prepared_request(o.job);
    if (!request.ok()) return out.fail(request.error());
    return run_request(std::move(*request), o.dry_run, out);
  }
  auto request = request_of(o, "run", words);
  if (!request.ok()) return out.fail(request.error());
  return run_request(std::move(*request), o.dry_run, out);
}

}  // namespace stoker::cli
