// `stoker cancel RUN`: docs/commands/cancel.md
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/runs.h"
#include "launch/control.h"

namespace stoker::cli {
namespace {

using How = launch::Cancellation::How;

struct Options {
  RunChoice choice;
  bool dry_run = false;
};

// "job 812345 (running)"
std::string target(const launch::Cancellation& plan) {
  const std::string what =
      plan.how == How::scheduler ? format("job {}", plan.scheduler_job) : format("process {}", plan.pid);
  return format("{} ({})", what, to_text(plan.before.life));
}

}  // namespace

int cancel(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("cancel", "Ends a run: its job in the queue, or its processes on this machine.");
  add_run_choice(arguments, &o.choice);
  arguments.flag("--dry-run", &o.dry_run, "say what would be ended, and end nothing");
  arguments.example("stoker cancel last");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto run = find_run(o.choice);
  if (!run.ok()) return out.fail(run.error());
  auto scheduler = make_scheduler();
  const auto plan = launch::plan_cancel(*run, scheduler, Deadline::after(kSchedulerPatience));
  if (!plan.ok()) return out.fail(plan.error());
  if (!o.dry_run) {
    const Status status = launch::cancel(*run, *plan, scheduler, Deadline::after(kSchedulerPatience));
    if (!status.ok()) return out.fail(status);
  }
  if (plan->how == How::none) {
    out.line("run {}: is over already ({})", run->id(), to_text(plan->before.life));
  } else {
    out.line("{} {}, run {}", o.dry_run ? "would end" : "asked to end:", target(*plan), run->id());
  }
  const bool is_asked = plan->how != How::none && !o.dry_run;
  out.json(dump({{"run", run->id()},
                 {"job", plan->scheduler_job.empty() ? nlohmann::ordered_json(nullptr)
                                                     : nlohmann::ordered_json(plan->scheduler_job)},
                 {"state", std::string(to_text(plan->before.life))},
                 {"asked", is_asked}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
