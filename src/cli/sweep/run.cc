// `stoker sweep run STUDY -- COMMAND...`: docs/commands/sweep-run.md
#include <csignal>
#include <cstdio>

#include "base/enum_names.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "rank/process/signals.h"
#include "sweep/runner/command_template.h"
#include "sweep/runner/trial_run.h"

namespace stoker::cli {
namespace {

struct RunTrialsArguments {
  std::string study;
  std::vector<std::string> command;
  std::int64_t most = 0;
  std::int64_t most_failed = 3;
  bool is_quiet = false;
};

// Trials of this call, by their endings.
struct TrialTally {
  std::uint64_t ended = 0;
  std::uint64_t failed = 0;
  std::int64_t failed_in_turn = 0;
  std::optional<int> signal;
};

std::string result_text(const sweep::Definition& definition, const sweep::StudyTrial& trial) {
  if (trial.state == sweep::TrialState::failed) return format("failed, {}", printable(trial.message));
  std::string text(stoker::to_text(trial.state));
  for (std::size_t i = 0; i < trial.values.size(); ++i)
    text += format(", {} {:.4g}", definition.objectives[i].metric, trial.values[i]);
  return text;
}

Result<std::optional<sweep::Proposal>> ask_until_decided(sweep::Study& study, rank::SignalFd& signals) {
  constexpr Duration kPause = std::chrono::milliseconds(500);
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(proposal, study.ask());
    if (proposal || !study.is_undecided() || signals.next_signal()) return proposal;
    RealClock().sleep(kPause);
  }
}

Result<TrialTally> run_trials(sweep::Study& study, const RunTrialsArguments& o, rank::SignalFd& signals,
                              Output& out) {
  sweep::TrialRunOptions options{.command = o.command};
  options.next_signal = [&signals] { return signals.next_signal(); };
  if (!o.is_quiet) {
    options.output = [&out](std::string_view bytes) {
      out.raw(bytes);
      std::fflush(stdout);
    };
  }
  TrialTally tally;
  while (!tally.signal && (o.most == 0 || tally.ended < static_cast<std::uint64_t>(o.most))) {
    STOKER_ASSIGN_OR_RETURN(proposal, ask_until_decided(study, signals));
    if (!proposal) {
      out.note("{}: no trial is left", study.definition().name);
      break;
    }
    out.note("trial {}: {}", proposal->number, sweep::to_text(proposal->values));
    STOKER_ASSIGN_OR_RETURN(result, sweep::run_trial(study, *proposal, options));
    out.note("trial {}: {}", proposal->number, result_text(study.definition(), result.trial));
    const bool is_failed = result.trial.state == sweep::TrialState::failed;
    tally.ended += 1;
    tally.failed += is_failed ? 1 : 0;
    tally.failed_in_turn = is_failed ? tally.failed_in_turn + 1 : 0;
    tally.signal = result.signal;
    if (!tally.signal && o.most_failed > 0 && tally.failed_in_turn >= o.most_failed &&
        tally.ended != static_cast<std::uint64_t>(o.most))
      return invalid("{}: the last {} failed (--max-failed)", study.definition().name,
                     counted(static_cast<std::uint64_t>(tally.failed_in_turn), "trial"))
          .cure("stoker sweep show {}", shell_quote(o.study));
  }
  return tally;
}

}  // namespace

int sweep_run(std::span<const std::string> words, Output& out) {
  RunTrialsArguments o;
  Arguments arguments("sweep run", "Run a command as trials of a study, one after the other.");
  add_study(arguments, &o.study);
  arguments.option("--trials", &o.most, "N", "Number of trials to run here, 0 until none is left");
  arguments.option("--max-failed", &o.most_failed, "N",
                   "Stop after this many failed trials in a row, 0 never");
  arguments.flag("-q,--quiet", &o.is_quiet, "Do not print the output of the trials");
  arguments.rest("COMMAND", &o.command, "Command with {name} for each parameter, after --");
  arguments.example("stoker sweep run lr.yaml --trials 2 -- python train.py --lr {lr}");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.command.empty())
    return out.fail(invalid("sweep run: no command")
                        .cure("stoker sweep run {} -- python train.py", shell_quote(o.study)));
  auto study = open_study(o.study, sweep::MissingStudy::create, out);
  if (!study.ok()) return out.fail(study.error());
  if (!study->definition().seeds.empty())
    return out.fail(invalid("{}: its trials have seeds, which only stoker sweep FILE runs (seeds)",
                            study->definition().name)
                        .cure("stoker sweep {} --job job.yaml", shell_quote(o.study)));
  if (const Status checked = check_command(o.command, study->definition().space); !checked.ok())
    return out.fail(checked);
  auto signals = rank::SignalFd::open({SIGINT, SIGTERM, SIGUSR1});
  if (!signals.ok()) return out.fail(signals.error());
  const auto tally = run_trials(*study, o, *signals, out);
  if (!tally.ok()) return out.fail(tally.error());
  out.json(format(R"({{"trials":{},"failed":{}}})", tally->ended, tally->failed));
  if (tally->signal) return 128 + *tally->signal;
  return tally->ended > 0 && tally->failed == tally->ended ? exit_code::kFailed : exit_code::kOk;
}

}  // namespace stoker::cli
