// `stoker resume RUN` and `stoker rerun RUN`: docs/commands/resume.md, docs/commands/rerun.md
#include <algorithm>
#include <filesystem>

#include "checkpoint/layout.h"
#include "cli/remote/host.h"
#include "cli/run_request.h"
#include "cli/runs.h"
#include "cli/submit_request.h"
#include "launch/array/submit_array.h"
#include "launch/next/orphan_ranks.h"
#include "launch/script/resume_script.h"
#include "launch/start/rerun.h"
#include "launch/start/submit.h"
#include "launch/state/array_file.h"
#include "launch/state/history.h"
#include "record/run_events.h"
#include "slurm/allocation.h"

namespace stoker::cli {
namespace {

struct ResumeRerunOptions {
  RunChoice choice;
  std::vector<std::string> set;
  bool dry_run = false;
  bool from_start = false;
  HostChoice host;
};

// Parses the common arguments; returns an exit code after --help or an error.
std::optional<int> parse(Arguments& arguments, ResumeRerunOptions& o, const char* set_help,
                         std::span<const std::string> words, Output& out) {
  add_run_choice(arguments, &o.choice);
  arguments.option("--set", &o.set, "KEY=VALUE", set_help);
  arguments.flag("--dry-run", &o.dry_run, "Show the command and the ranks, start nothing");
  add_host_choice(arguments, &o.host);
  return arguments.parse(words, out);
}

// A submitted run is resubmitted, unless this process is inside an allocation.
int start(launch::Request request, const record::RunFolder& run, const ResumeRerunOptions& o, Output& out) {
  const auto here = slurm::current_allocation(slurm::process_environment());
  if (!here.ok()) return out.fail(here.error());
  if (launch::was_submitted(run) && !*here) return submit_request(std::move(request), o.dry_run, out);
  return run_request(std::move(request), o.dry_run, out);
}

// A user script is always submitted.
int start_script(Result<launch::PlannedScript> plan, std::vector<std::string> typed,
                 const ResumeRerunOptions& o, Output& out) {
  if (!plan.ok()) return out.fail(plan.error());
  if (launch::has_script_changed(*plan)) {
    out.note("{} was removed or changed after its submission: using the run's copy",
             printable(plan->request.script.string()));
  }
  // The next resume reads the sbatch options from the recorded command line.
  if (!plan->resumed) {
    for (const std::string& option : plan->request.options) typed.push_back("--sbatch=" + option);
  }
  plan->request.typed = std::move(typed);
  return submit_script_request(*plan, o.dry_run, out);
}

// Resubmits the unfinished tasks of an array.
int resume_array(const record::RunFolder& folder, const launch::RunLife& life, const ResumeRerunOptions& o,
                 std::span<const std::string> words, Output& out) {
  auto rest = launch::resume_array(folder, life, o.set);
  if (!rest.ok()) return out.fail(rest.error());
  rest->request.typed = typed_command("resume", words);
  return submit_array_request(std::move(rest->request), rest->array, o.dry_run, out);
}

// Ranks that outlive a killed supervisor may still be saving: wait for them, then resume from their
// checkpoint.
Status wait_for_orphan_ranks(const record::RunFolder& run, slurm::Scheduler& scheduler, Output& out) {
  std::optional<ScopedStopSignals> signals;
  launch::OrphanWait wait{.on_wait = {}, .should_stop = stop_requested};
  wait.on_wait = [&](const std::string& what) {
    signals.emplace();
    out.note("{}", what);
  };
  RealClock clock;
  STOKER_RETURN_IF_ERROR(launch::wait_for_orphan_ranks(run, wait, clock));
  if (!signals) return {};
  // Another process may have resumed the run in the meantime.
  const launch::RunLife life = launch::query_life(run, scheduler, Deadline::after(kSchedulerTimeout));
  if (stop_requested()) return cancelled("run {}: not resumed", run.id());
  return launch::check_resumable(run, life);
}

// Whether any attempt has started a rank.
bool has_started_ranks(const record::RunFolder& run, int attempts) {
  for (int number = attempts; number > 0; --number) {
    const auto log = record::read_attempt_events(run.folder() / "attempts" / std::to_string(number));
    const bool has_ranks =
        log.ok() && std::any_of(log->events.begin(), log->events.end(), [](const record::Event& event) {
          return record::rank_started(event).has_value();
        });
    if (has_ranks) return true;
  }
  return false;
}

// Without a checkpoint a command starts at the beginning, also over checkpoints in a separate folder.
Status check_resume_point(const launch::Request& request, const record::RunFolder& run,
                          const launch::RunLife& life, bool from_start) {
  // The built-in trainer saves to the run's folder only, and a run that has never started has nothing to
  // lose.
  if (!request.job.command || !has_started_ranks(run, life.records.last_attempt)) return {};
  STOKER_ASSIGN_OR_RETURN(from, launch::find_resume_point(request, run));
  if (!from.step.empty()) {
    if (!from_start) return {};
    return invalid("run {}: has the checkpoint {}, and --from-start would overwrite it", run.id(),
                   printable(from.step.filename().string()))
        .cure("stoker rerun {}", run.id());
  }
  if (from_start) return {};
  const Path folder =
      checkpoint::directory_of_run(request.job.checkpoint.directory, std::filesystem::absolute(run.folder()));
  return not_found(
             "run {}: no checkpoint in {} (STOKER_CHECKPOINT_DIR), and attempt {} has run: it would start at "
             "the beginning, also over checkpoints in a separate folder",
             run.id(), printable(folder.string()), life.records.last_attempt)
      .cure("stoker resume {} --from-start", run.id());
}

// On standard error: standard output belongs to rank 0.
void print_drift(const record::RunFolder& run, const std::vector<launch::Drift>& drift, Output& out) {
  if (drift.empty()) {
    out.note("rerun: {} (no differences in job, code, data and programs)", run.id());
    return;
  }
  out.note("rerun: {} with differences:", run.id());
  for (const launch::Drift& each : drift) out.note("  {}", to_text(each));
}

}  // namespace

int resume(std::span<const std::string> words, Output& out) {
  ResumeRerunOptions o;
  Arguments arguments("resume", "Resume a run from its last valid checkpoint, as its next attempt.");
  arguments.example("stoker resume last");
  arguments.flag("--from-start", &o.from_start, "Start at the beginning if the run saved no checkpoint");
  if (const auto code =
          parse(arguments, o, "Change a job file value for this and later attempts", words, out))
    return *code;
  if (o.host.is_remote()) return run_on_host(o.host, "resume", words, "", out);
  if (!o.dry_run) ignore_sigpipe();
  const auto run = find_resumable_run(o.choice);
  if (!run.ok()) return out.fail(run.error());
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  auto scheduler = make_scheduler();
  const launch::RunLife life = launch::query_life(*run, scheduler, Deadline::after(kSchedulerTimeout));
  if (o.dry_run) out.note("run {}: {}", run->id(), to_text(life));
  if (launch::attempt_with_script(*run))
    return start_script(launch::resume_script(*run, life, o.set, *program), typed_command("resume", words), o,
                        out);
  const auto last = run->last_attempt();
  if (last.ok() && launch::is_array(*last)) return resume_array(*run, life, o, words, out);
  auto request = launch::resume_request(*run, life, o.set);
  if (!request.ok()) return out.fail(request.error());
  request->typed = typed_command("resume", words);
  for (const std::string& change : request->changes) out.note("changed: {}", change);
  for (const std::string& value : request->ignored_changes) out.note("job file: {}", value);
  if (!o.dry_run) {
    const Status alone = wait_for_orphan_ranks(*run, scheduler, out);
    if (!alone.ok()) return out.fail(alone);
  }
  const Status from = check_resume_point(*request, *run, life, o.from_start);
  if (!from.ok()) return out.fail(from);
  return start(std::move(*request), *run, o, out);
}

int rerun(std::span<const std::string> words, Output& out) {
  ResumeRerunOptions o;
  Arguments arguments("rerun",
                      "Run the job of a run again from the start, as a new run, and list differences.");
  arguments.example("stoker rerun last");
  if (const auto code = parse(arguments, o, "Change a job file value", words, out)) return *code;
  if (o.host.is_remote()) return run_on_host(o.host, "rerun", words, "", out);
  if (!o.dry_run) ignore_sigpipe();
  const auto run = find_resumable_run(o.choice);
  if (!run.ok()) return out.fail(run.error());
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  if (launch::attempt_with_script(*run))
    return start_script(launch::rerun_script(*run, o.set, *program), typed_command("rerun", words), o, out);
  auto request = launch::rerun_request(*run, o.set);
  if (!request.ok()) return out.fail(request.error());
  print_drift(*run, launch::find_drift(*run, request->job), out);
  request->typed = typed_command("rerun", words);
  return start(std::move(*request), *run, o, out);
}

}  // namespace stoker::cli
