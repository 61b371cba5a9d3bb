// `stoker wait RUN`: docs/commands/wait.md
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/runs.h"
#include "launch/control.h"

namespace stoker::cli {
namespace {

struct Options {
  RunChoice choice;
  std::optional<Duration> timeout;
};

std::string sentence(const launch::RunLife& run) {
  std::string text(to_text(run.life));
  if (run.life == launch::Life::running && !run.nodes.empty()) text += " on " + printable(run.nodes);
  return run.note.empty() ? text : format("{} ({})", text, run.note);
}

}  // namespace

int wait(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("wait", "Waits until a run is over, and exits with the run's own exit code.");
  add_run_choice(arguments, &o.choice);
  arguments.option("--timeout", &o.timeout, "DURATION", "give up after so long (exit code 1)");
  arguments.example("stoker wait last --timeout 2h");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto run = find_run(o.choice);
  if (!run.ok()) return out.fail(run.error());
  install_stop_signals();
  auto scheduler = make_scheduler();
  launch::WaitOptions options;
  if (o.timeout) options.deadline = Deadline::after(*o.timeout);
  options.should_stop = stop_requested;
  options.on_change = [&](const launch::RunLife& life) {
    if (!is_over(life.life)) out.note("{}", sentence(life));
  };
  const auto ended = launch::wait_for(*run, scheduler, options);
  if (!ended.ok()) return out.fail(ended.error());
  out.line("run {}: {}", run->id(), sentence(*ended));
  const int code = launch::exit_code_of(*ended);
  const nlohmann::ordered_json value = {{"run", run->id()},
                                        {"state", std::string(to_text(ended->life))},
                                        {"exit_code", code},
                                        {"reason", ended->note}};
  out.json(dump(value));
  return code;
}

}  // namespace stoker::cli
