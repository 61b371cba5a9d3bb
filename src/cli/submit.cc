// `stoker submit JOB`: docs/commands/submit.md
#include "cli/running.h"

namespace stoker::cli {
namespace {

struct Options {
  std::string job;
  std::vector<std::string> set;
  bool dry_run = false;
};

}  // namespace

int submit(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("submit",
                      "Puts a job into the queue of a Slurm cluster: run folder, batch script, sbatch.");
  arguments.positional("JOB", &o.job, "the job file");
  arguments.option("--set", &o.set, "KEY=VALUE", "lays a value over the job file: --set resources.nodes=4");
  arguments.flag("--dry-run", &o.dry_run, "show the batch script, and submit nothing");
  arguments.example("stoker submit job.yaml --set resources.nodes=2 --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  job::LoadOptions load{.set = o.set};
  for (const auto& [name, value] : current_environment()) load.environment.push_back(name + "=" + value);
  auto job = job::load(o.job, load);
  if (!job.ok()) return out.fail(job.error());
  launch::Request request{.job = std::move(*job)};
  request.job_file = o.job;
  request.typed = typed_words("submit", words);
  return submit_request(std::move(request), o.dry_run, out);
}

}  // namespace stoker::cli
