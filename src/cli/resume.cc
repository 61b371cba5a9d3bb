// `stoker resume RUN`: docs/commands/resume.md
#include "cli/running.h"
#include "cli/runs.h"
#include "launch/submit.h"
#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

struct Options {
  RunChoice choice;
  std::vector<std::string> set;
  bool dry_run = false;
};

}  // namespace

int resume(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("resume", "Goes on with a run from its last valid checkpoint, as its next attempt.");
  add_run_choice(arguments, &o.choice);
  arguments.option("--set", &o.set, "KEY=VALUE", "changes a value of the job from here on");
  arguments.flag("--dry-run", &o.dry_run, "show what would be started, and start nothing");
  arguments.example("stoker resume last");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto folder = find_run(o.choice);
  if (!folder.ok()) return out.fail(folder.error());
  auto scheduler = make_scheduler();
  const launch::RunLife life = launch::look_at(*folder, scheduler, Deadline::after(kSchedulerPatience));
  auto request = launch::resume_request(*folder, life, o.set);
  if (!request.ok()) return out.fail(request.error());
  request->typed = typed_words("resume", words);
  const auto here = slurm::current_allocation(slurm::process_environment());
  if (!here.ok()) return out.fail(here.error());
  // What lives in the queue goes on there; inside an allocation that was got for it, here.
  if (launch::was_submitted(*folder) && !*here) return submit_request(std::move(*request), o.dry_run, out);
  return run_request(std::move(*request), o.dry_run, out);
}

}  // namespace stoker::cli
