// `stoker wait RUN`: docs/commands/wait.md
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/life/jobs.h"
#include "cli/remote/host.h"
#include "launch/status/control.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

struct WaitArguments {
  RunChoice choice;
  HostChoice host;
  std::optional<Duration> timeout;
  bool is_strict = false;
};

launch::WaitOptions wait_options(const WaitArguments& o) {
  launch::WaitOptions options;
  if (o.timeout) options.deadline = Deadline::after(*o.timeout);
  options.should_stop = stop_requested;
  return options;
}

// Prints log lines that contradict a successful end; returns the resulting exit code.
int print_doubts(const std::vector<observe::SuspectLine>& doubts, const WaitArguments& o, int code,
                 Output& out) {
  if (code != exit_code::kOk || doubts.empty()) return code;
  for (const observe::SuspectLine& doubt : doubts)
    out.line("  but {}:{}: {}", display_path(doubt.file), doubt.line, doubt.text);
  return o.is_strict ? exit_code::kFailed : code;
}

int wait_for_run(const record::RunFolder& run, const WaitArguments& o, Output& out) {
  auto scheduler = make_scheduler();
  launch::WaitOptions options = wait_options(o);
  options.on_change = [&](const launch::RunLife& life) {
    if (!is_over(life.life)) out.note("{}", to_text(life));
  };
  const auto ended = launch::wait_for(run, scheduler, options);
  if (!ended.ok()) return out.fail(ended.error());
  out.line("run {}: {}", run.id(), to_text(*ended));
  std::vector<observe::SuspectLine> doubts;
  if (const auto attempt = run.last_attempt(); attempt.ok() && ended->life == launch::Life::done)
    doubts = observe::attempt_suspect_lines(*attempt);
  int code = print_doubts(doubts, o, launch::exit_code_of(*ended), out);
  if (code == exit_code::kOk && o.is_strict && !ended->records.lost_output.empty()) code = exit_code::kFailed;
  out.json(json_text(nlohmann::ordered_json{{"run", run.id()},
                                            {"state", std::string(to_text(ended->life))},
                                            {"exit_code", code},
                                            {"reason", ended->note},
                                            {"doubts", parse_json<Json>(json_of(doubts))}}));
  return code;
}

int wait_for_job(const Target& target, const WaitArguments& o, Output& out) {
  auto scheduler = make_scheduler();
  // Fails early without such a job or without Slurm.
  const auto first = query_jobs(target, scheduler);
  if (!first.ok() && first.error().code() != Code::unavailable && first.error().code() != Code::timeout)
    return out.fail(first.error());
  const auto ended = launch::wait_for_job(target.job, scheduler, wait_options(o), [&](const auto& jobs) {
    if (!is_over(combined_life(jobs))) out.note("{}", summary_text(jobs));
  });
  if (!ended.ok()) return out.fail(ended.error());
  out.line("{}: {}", name_of(target, *ended), summary_text(*ended));
  const std::vector<observe::SuspectLine> doubts =
      ended->size() == 1 ? ended->front().doubts : std::vector<observe::SuspectLine>();
  const int code = print_doubts(doubts, o, launch::exit_code_of(*ended), out);
  out.json(json_text(nlohmann::ordered_json{{"job", target.job},
                                            {"state", std::string(to_text(combined_life(*ended)))},
                                            {"exit_code", code},
                                            {"jobs", parse_json<Json>(json_of(*ended))}}));
  return code;
}

}  // namespace

int wait(std::span<const std::string> words, Output& out) {
  WaitArguments o;
  Arguments arguments("wait", "Wait until a run has ended; the exit code shows how.");
  arguments.optional_positional("RUN", &o.choice.run, kRunHelp);
  arguments.option("--runs", &o.choice.runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.option("--timeout", &o.timeout, "DURATION", "Give up after this time (exit code 1)");
  arguments.flag("--strict", &o.is_strict,
                 "Exit with 1 also if a run is done but its log contains a failure");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker wait last --timeout 2h");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_remote()) return run_on_host(o.host, "wait", words, "", out);
  const auto target = find_target(o.choice);
  if (!target.ok()) return out.fail(target.error());
  install_stop_signals();
  return target->run ? wait_for_run(*target->run, o, out) : wait_for_job(*target, o, out);
}

}  // namespace stoker::cli
