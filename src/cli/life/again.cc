// `stoker resume RUN` and `stoker rerun RUN`: docs/commands/resume.md, docs/commands/rerun.md
#include "cli/running.h"
#include "cli/runs.h"
#include "launch/array/array_file.h"
#include "launch/array/submit_array.h"
#include "launch/next/survivors.h"
#include "launch/rerun.h"
#include "launch/script/script_again.h"
#include "launch/submit.h"
#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

struct AgainOptions {
  RunChoice choice;
  std::vector<std::string> set;
  bool dry_run = false;
};

// What both take; an exit code when there is nothing more to do.
std::optional<int> parse(Arguments& arguments, AgainOptions& o, const char* what_set_does,
                         std::span<const std::string> words, Output& out) {
  add_run_choice(arguments, &o.choice);
  arguments.option("--set", &o.set, "KEY=VALUE", what_set_does);
  arguments.flag("--dry-run", &o.dry_run, "show what would be started, and start nothing");
  return arguments.parse(words, out);
}

// What lives in the queue goes on there; inside an allocation that was got for it, here.
int start(launch::Request request, const record::RunFolder& run, const AgainOptions& o, Output& out) {
  const auto here = slurm::current_allocation(slurm::process_environment());
  if (!here.ok()) return out.fail(here.error());
  if (launch::was_submitted(run) && !*here) return submit_request(std::move(request), o.dry_run, out);
  return run_request(std::move(request), o.dry_run, out);
}

// A batch script of people's own is always for the queue.
int start_script(Result<launch::PlannedScript> plan, std::vector<std::string> typed, const AgainOptions& o,
                 Output& out) {
  if (!plan.ok()) return out.fail(plan.error());
  if (launch::has_script_changed(*plan)) {
    out.note(
        "{} is not there any more, or reads otherwise than when it was submitted: the run's copy is taken",
        printable(plan->request.script.string()));
  }
  // The options of the first submission are read from its words again the next time.
  if (!plan->resumed) {
    for (const std::string& option : plan->request.options) typed.push_back("--sbatch=" + option);
  }
  plan->request.typed = std::move(typed);
  return submit_script_request(*plan, o.dry_run, out);
}

// What of an array is not done goes into the queue again.
int resume_array(const record::RunFolder& folder, const launch::RunLife& life, const AgainOptions& o,
                 std::span<const std::string> words, Output& out) {
  auto rest = launch::resume_array(folder, life, o.set);
  if (!rest.ok()) return out.fail(rest.error());
  rest->request.typed = typed_words("resume", words);
  return submit_array_request(std::move(rest->request), rest->array, o.dry_run, out);
}

// What ranks of a run that was killed outright save last is where to go on, and nobody may write beside them.
Status wait_for_survivors(const record::RunFolder& run, slurm::Scheduler& scheduler, Output& out) {
  std::optional<StopSignalsMeanwhile> signals;
  launch::SurvivorWait wait{.on_wait = {}, .should_stop = stop_requested};
  wait.on_wait = [&](const std::string& what) {
    signals.emplace();
    out.note("{}", what);
  };
  RealClock clock;
  RETURN_IF_ERROR(launch::wait_for_survivors(run, wait, clock));
  if (!signals) return {};
  // Meanwhile somebody else may have gone on with it.
  const launch::RunLife life = launch::look_at(run, scheduler, Deadline::after(kSchedulerPatience));
  if (stop_requested()) return cancelled("run {}: not resumed", run.id());
  return launch::check_can_go_on(run, life);
}

// On standard error: standard output is rank 0's.
void tell(const record::RunFolder& run, const std::vector<launch::Drift>& drift, Output& out) {
  if (drift.empty()) {
    out.note("again: {} (job, code, data and programs as far as they are known: the same)", run.id());
    return;
  }
  out.note("again: {}, but not all is as it was", run.id());
  for (const launch::Drift& each : drift) out.note("  {}", to_text(each));
}

}  // namespace

int resume(std::span<const std::string> words, Output& out) {
  AgainOptions o;
  Arguments arguments("resume", "Goes on with a run from its last valid checkpoint, as its next attempt.");
  arguments.example("stoker resume last");
  if (const auto code = parse(arguments, o, "changes a value of the job from here on", words, out))
    return *code;
  if (!o.dry_run) outlive_readers();
  const auto run = find_run_to_go_on(o.choice);
  if (!run.ok()) return out.fail(run.error());
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  auto scheduler = make_scheduler();
  const launch::RunLife life = launch::look_at(*run, scheduler, Deadline::after(kSchedulerPatience));
  if (launch::attempt_with_script(*run))
    return start_script(launch::resume_script(*run, life, o.set, *program), typed_words("resume", words), o,
                        out);
  const auto last = run->last_attempt();
  if (last.ok() && launch::is_array(*last)) return resume_array(*run, life, o, words, out);
  auto request = launch::resume_request(*run, life, o.set);
  if (!request.ok()) return out.fail(request.error());
  request->typed = typed_words("resume", words);
  for (const std::string& change : request->changes) out.note("changed: {}", change);
  for (const std::string& value : request->not_taken) out.note("job file: {}", value);
  if (!o.dry_run) {
    const Status alone = wait_for_survivors(*run, scheduler, out);
    if (!alone.ok()) return out.fail(alone);
  }
  return start(std::move(*request), *run, o, out);
}

int rerun(std::span<const std::string> words, Output& out) {
  AgainOptions o;
  Arguments arguments(
      "rerun", "Runs the job of a run once more from the start, as a run of its own; says what differs now.");
  arguments.example("stoker rerun last");
  if (const auto code = parse(arguments, o, "changes a value of the job", words, out)) return *code;
  if (!o.dry_run) outlive_readers();
  const auto run = find_run_to_go_on(o.choice);
  if (!run.ok()) return out.fail(run.error());
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  if (launch::attempt_with_script(*run))
    return start_script(launch::rerun_script(*run, o.set, *program), typed_words("rerun", words), o, out);
  auto request = launch::rerun_request(*run, o.set);
  if (!request.ok()) return out.fail(request.error());
  tell(*run, launch::find_drift(*run, request->job), out);
  request->typed = typed_words("rerun", words);
  return start(std::move(*request), *run, o, out);
}

}  // namespace stoker::cli
