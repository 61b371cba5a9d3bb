// `stoker run JOB`: docs/commands/run.md
#include <csignal>

#include "base/file.h"
#include "cli/run_request.h"
#include "cli/runs.h"
#include "launch/array/run_tasks.h"
#include "launch/script/user_script.h"
#include "launch/start/submit.h"
#include "launch/state/array_file.h"

namespace stoker::cli {
namespace {

// Runs a submitted user script and exits like it, so that Slurm records the script's own exit status.
int run_user_script(const Path& attempt, Output& out) {
  const auto exit = launch::run_script(attempt);
  if (!exit.ok()) return out.fail(exit.error());
  if (exit->signal != 0) {
    ::signal(exit->signal, SIG_DFL);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, exit->signal);
    ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
    ::raise(exit->signal);
  }
  return exit->shell_code();
}

// Timeout of scheduler queries from within a job.
constexpr std::chrono::seconds kTurnTimeout{10};

// Runs the tasks of one array job; each task has its own log.
int run_array_job(launch::Request request, slurm::Scheduler& scheduler, Output& out) {
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request.stoker = *program;
  const auto code =
      launch::run_tasks(request, scheduler, [&](const std::string& text) { out.note("{}", text); });
  return code.ok() ? *code : out.fail(code.error());
}

// Entry point of a submitted batch script: may skip the attempt, and may queue a follow-up job.
int run_turn(launch::Request request, Output& out) {
  auto scheduler = make_scheduler();
  if (launch::is_array(*request.prepared)) return run_array_job(std::move(request), scheduler, out);
  const auto turn = launch::decide_start(request, scheduler, Deadline::after(kTurnTimeout));
  if (!turn.ok()) return out.fail(turn.error());
  if (!turn->will_continue) {
    out.note("{}", turn->why);
    return turn->exit_code;
  }
  return run_request(request, false, out, [&](const launch::RunResult& result) {
    return launch::decide_next(request, result, scheduler, Deadline::after(kTurnTimeout));
  });
}

}  // namespace

int run(std::span<const std::string> words, Output& out) {
  JobChoice o;
  Arguments arguments("run", "Run a job on this machine or in the current Slurm allocation.");
  arguments.positional("JOB", &o.job, "Job file, or attempt folder (used by batch scripts)");
  arguments.option("--set", &o.set, "KEY=VALUE", "Override a job file value: --set train.epochs=3");
  arguments.flag("--dry-run", &o.dry_run, "Show the command and the ranks, start nothing");
  arguments.example("stoker run job.yaml --set train.epochs=3");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (folder_exists(o.job)) {
    if (!o.set.empty()) return out.fail(invalid("run: --set: {} is an attempt with a fixed job", o.job));
    if (launch::has_script(o.job) && !o.dry_run) return run_user_script(o.job, out);
    auto request = launch::prepared_request(o.job);
    if (!request.ok()) return out.fail(request.error());
    if (o.dry_run) return run_request(std::move(*request), o.dry_run, out);
    return run_turn(std::move(*request), out);
  }
  auto request = request_of(o, "run", words);
  if (!request.ok()) return out.fail(request.error());
  if (request->job.array.is_enabled()) {
    return out.fail(
        invalid("array.over: array tasks run only under Slurm ({})", request->job.origins.where("array.over"))
            .cure("stoker submit {}", shell_quote(o.job)));
  }
  return run_request(std::move(*request), o.dry_run, out);
}

}  // namespace stoker::cli
