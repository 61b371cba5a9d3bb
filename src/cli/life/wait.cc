// `stoker wait RUN`: docs/commands/wait.md
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/life/jobs.h"
#include "cli/remote/host.h"
#include "launch/control.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;

struct WaitOptions {
  RunChoice choice;
  HostChoice host;
  std::optional<Duration> timeout;
  bool is_strict = false;
};

std::string sentence_of(const launch::RunLife& run) {
  std::string text(to_text(run.life));
  if (run.life == launch::Life::running && !run.nodes.empty()) text += " on " + printable(run.nodes);
  return run.note.empty() ? text : format("{} ({})", text, run.note);
}

launch::WaitOptions wait_options(const WaitOptions& o) {
  launch::WaitOptions options;
  if (o.timeout) options.deadline = Deadline::after(*o.timeout);
  options.should_stop = stop_requested;
  return options;
}

// Says what a log tells against a good end; the exit code that comes of it.
int tell_doubts(const std::vector<observe::Doubt>& doubts, const WaitOptions& o, int code, Output& out) {
  if (code != exit_code::kOk || doubts.empty()) return code;
  for (const observe::Doubt& doubt : doubts)
    out.line("  but {}:{}: {}", near(doubt.file), doubt.line, doubt.text);
  return o.is_strict ? exit_code::kFailed : code;
}

int wait_for_run(const record::RunFolder& run, const WaitOptions& o, Output& out) {
  auto scheduler = make_scheduler();
  launch::WaitOptions options = wait_options(o);
  options.on_change = [&](const launch::RunLife& life) {
    if (!is_over(life.life)) out.note("{}", sentence_of(life));
  };
  const auto ended = launch::wait_for(run, scheduler, options);
  if (!ended.ok()) return out.fail(ended.error());
  out.line("run {}: {}", run.id(), sentence_of(*ended));
  std::vector<observe::Doubt> doubts;
  if (const auto attempt = run.last_attempt(); attempt.ok() && ended->life == launch::Life::done)
    doubts = observe::doubts_of(*attempt);
  const int code = tell_doubts(doubts, o, launch::exit_code_of(*ended), out);
  out.json(json_text(nlohmann::ordered_json{{"run", run.id()},
                                            {"state", std::string(to_text(ended->life))},
                                            {"exit_code", code},
                                            {"reason", ended->note},
                                            {"doubts", parse_json<Json>(json_of(doubts))}}));
  return code;
}

int wait_for_job(const Target& target, const WaitOptions& o, Output& out) {
  auto scheduler = make_scheduler();
  // Says at once when there is neither such a job nor a Slurm.
  const auto first = look_at(target, scheduler);
  if (!first.ok() && first.error().code() != Code::unavailable && first.error().code() != Code::timeout)
    return out.fail(first.error());
  const auto ended = launch::wait_for_job(target.job, scheduler, wait_options(o), [&](const auto& jobs) {
    if (!is_over(life_of_all(jobs))) out.note("{}", sentence(jobs));
  });
  if (!ended.ok()) return out.fail(ended.error());
  out.line("{}: {}", name_of(target, *ended), sentence(*ended));
  const std::vector<observe::Doubt> doubts =
      ended->size() == 1 ? ended->front().doubts : std::vector<observe::Doubt>();
  const int code = tell_doubts(doubts, o, launch::exit_code_of(*ended), out);
  out.json(json_text(nlohmann::ordered_json{{"job", target.job},
                                            {"state", std::string(to_text(life_of_all(*ended)))},
                                            {"exit_code", code},
                                            {"jobs", parse_json<Json>(json_of(*ended))}}));
  return code;
}

}  // namespace

int wait(std::span<const std::string> words, Output& out) {
  WaitOptions o;
  Arguments arguments("wait", "Waits until a run is over, and says by its exit code how it ended.");
  arguments.optional_positional("RUN", &o.choice.run, kWhatIsARun);
  arguments.option("--runs", &o.choice.runs, "DIR",
                   "folder that holds the runs (the job's record.directory)");
  arguments.option("--timeout", &o.timeout, "DURATION", "give up after so long (exit code 1)");
  arguments.flag("--strict", &o.is_strict,
                 "exit code 1 also for one that is done although its log tells of a failure");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker wait last --timeout 2h");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_elsewhere()) return run_elsewhere(o.host, "wait", words, "", out);
  const auto target = find_target(o.choice);
  if (!target.ok()) return out.fail(target.error());
  install_stop_signals();
  return target->run ? wait_for_run(*target->run, o, out) : wait_for_job(*target, o, out);
}

}  // namespace stoker::cli
