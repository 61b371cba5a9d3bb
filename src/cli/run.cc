// `stoker run JOB`: docs/commands/run.md
#include <csignal>

#include "base/file.h"
#include "cli/running.h"
#include "cli/runs.h"
#include "launch/array/array_file.h"
#include "launch/array/run_tasks.h"
#include "launch/script/own_script.h"
#include "launch/submit.h"

namespace stoker::cli {
namespace {

// A batch script of people's own in the job that was submitted for it: ends as the script ended, so that
// Slurm tells of it what it would tell of the script itself.
int run_own_script(const Path& attempt, Output& out) {
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

// How long a job waits for the controller when it has something to ask of it.
constexpr std::chrono::seconds kTurnPatience{10};

// One job of an array: its tasks, which print into logs of their own.
int run_array_job(launch::Request request, slurm::Scheduler& scheduler, Output& out) {
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  request.stoker = *program;
  const auto code =
      launch::run_tasks(request, scheduler, [&](const std::string& text) { out.note("{}", text); });
  return code.ok() ? *code : out.fail(code.error());
}

// What a batch script of a submitted run starts: its turn may come to nothing, and something may come after
// it.
int run_turn(launch::Request request, Output& out) {
  auto scheduler = make_scheduler();
  if (launch::is_array(*request.prepared)) return run_array_job(std::move(request), scheduler, out);
  const auto turn = launch::take_turn(request, scheduler, Deadline::after(kTurnPatience));
  if (!turn.ok()) return out.fail(turn.error());
  if (!turn->goes_on) {
    out.note("{}", turn->why);
    return turn->exit_code;
  }
  return run_request(request, false, out, [&](const launch::RunResult& result) {
    return launch::conclude_turn(request, result, scheduler, Deadline::after(kTurnPatience));
  });
}

}  // namespace

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
    if (launch::holds_script(o.job) && !o.dry_run) return run_own_script(o.job, out);
    auto request = launch::prepared_request(o.job);
    if (!request.ok()) return out.fail(request.error());
    if (o.dry_run) return run_request(std::move(*request), o.dry_run, out);
    return run_turn(std::move(*request), out);
  }
  auto request = request_of(o, "run", words);
  if (!request.ok()) return out.fail(request.error());
  if (request->job.array.is_on()) {
    return out.fail(
        invalid("array.over: its tasks run in a queue only ({})", request->job.origins.where("array.over"))
            .cure("stoker submit {}", shell_quote(o.job)));
  }
  return run_request(std::move(*request), o.dry_run, out);
}

}  // namespace stoker::cli
