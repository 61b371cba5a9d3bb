// `stoker cancel RUN`: docs/commands/cancel.md
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/life/jobs.h"
#include "cli/remote/host.h"
#include "launch/status/control.h"

namespace stoker::cli {
namespace {

using How = launch::Cancellation::How;

struct CancelOptions {
  RunChoice choice;
  HostChoice host;
  bool dry_run = false;
  bool last = false;
};

// "job 812345 (running)"
std::string target(const launch::Cancellation& plan) {
  const std::string what =
      plan.how == How::scheduler ? format("job {}", plan.scheduler_job) : format("process {}", plan.pid);
  return format("{} ({})", what, to_text(plan.before.life));
}

int cancel_run(const record::RunFolder& run, const CancelOptions& o, Output& out) {
  auto scheduler = make_scheduler();
  const auto plan = launch::plan_cancel(run, scheduler, Deadline::after(kSchedulerTimeout));
  if (!plan.ok()) return out.fail(plan.error());
  if (!o.dry_run) {
    const Status status = launch::cancel(run, *plan, scheduler, Deadline::after(kSchedulerTimeout));
    if (!status.ok()) return out.fail(status);
  }
  if (plan->how == How::none) {
    out.line("run {}: has already ended ({})", run.id(), to_text(plan->before.life));
  } else {
    out.line("{} {}, run {}", o.dry_run ? "would cancel" : "cancelling", target(*plan), run.id());
  }
  const bool is_asked = plan->how != How::none && !o.dry_run;
  out.json(json_text(nlohmann::ordered_json{
      {"run", run.id()},
      {"job", plan->scheduler_job.empty() ? nlohmann::ordered_json(nullptr)
                                          : nlohmann::ordered_json(plan->scheduler_job)},
      {"state", std::string(to_text(plan->before.life))},
      {"asked", is_asked}}));
  return exit_code::kOk;
}

// A job without a run; Slurm checks the permission.
int cancel_job(const Target& target, const CancelOptions& o, Output& out) {
  auto scheduler = make_scheduler();
  const auto jobs = query_jobs(target, scheduler);
  if (!jobs.ok()) return out.fail(jobs.error());
  const launch::Life life = combined_life(*jobs);
  const bool is_wanted = !is_over(life);
  if (is_wanted && !o.dry_run) {
    const Status status = scheduler.cancel(target.job, Deadline::after(kSchedulerTimeout));
    if (!status.ok()) return out.fail(status);
  }
  const std::string name = name_of(target, *jobs);
  if (!is_wanted) out.line("{}: has already ended ({})", name, to_text(life));
  if (is_wanted) out.line("{} {} ({})", o.dry_run ? "would cancel" : "cancelling", name, to_text(life));
  out.json(json_text(nlohmann::ordered_json{{"run", nullptr},
                                            {"job", target.job},
                                            {"state", std::string(to_text(life))},
                                            {"asked", is_wanted && !o.dry_run}}));
  return exit_code::kOk;
}

}  // namespace

int cancel(std::span<const std::string> words, Output& out) {
  CancelOptions o;
  Arguments arguments("cancel", "Cancel a run: its Slurm job, or its processes on this machine.");
  o.choice.run.clear();
  arguments.optional_positional("RUN", &o.choice.run,
                                "Run id, unique prefix, folder, Slurm job id, or 'last'");
  arguments.option("--runs", &o.choice.runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.flag("--last", &o.last, "Cancel the newest run");
  arguments.flag("--dry-run", &o.dry_run, "Show the job or process, cancel nothing");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker cancel last");
  if (const auto code = arguments.parse(words, out)) return *code;
  // A run that is cancelled by mistake loses its place in the queue.
  if (o.choice.run.empty() && !o.last) {
    return out.fail(invalid("cancel: names no run")
                        .cure("stoker cancel --last for the newest run, stoker status for their ids"));
  }
  if (!o.choice.run.empty() && o.last)
    return out.fail(invalid("cancel: '{}' and --last exclude each other", printable(o.choice.run)));
  if (o.last) o.choice.run = "last";
  if (o.host.is_remote()) return run_on_host(o.host, "cancel", words, "", out);
  const auto target = find_target(o.choice);
  if (!target.ok()) return out.fail(target.error());
  return target->run ? cancel_run(*target->run, o, out) : cancel_job(*target, o, out);
}

}  // namespace stoker::cli
