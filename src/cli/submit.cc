// `stoker submit JOB`: docs/commands/submit.md
#include "cli/running.h"

namespace stoker::cli {

int submit(std::span<const std::string> words, Output& out) {
  JobChoice o;
  Arguments arguments("submit",
                      "Puts a job into the queue of a Slurm cluster: run folder, batch script, sbatch.");
  arguments.positional("JOB", &o.job, "the job file");
  arguments.option("--set", &o.set, "KEY=VALUE", "lays a value over the job file: --set resources.nodes=4");
  arguments.flag("--dry-run", &o.dry_run, "show the batch script, and submit nothing");
  arguments.example("stoker submit job.yaml --set resources.nodes=2 --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  auto request = request_of(o, "submit", words);
  if (!request.ok()) return out.fail(request.error());
  return submit_request(std::move(*request), o.dry_run, out);
}

}  // namespace stoker::cli
