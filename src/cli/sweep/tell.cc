// `stoker sweep tell STUDY TRIAL VALUE...`: docs/commands/sweep-tell.md
#include "base/enum_names.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"

namespace stoker::cli {
namespace {

struct TellArguments {
  std::string study;
  std::string trial;
  std::vector<std::string> values;
  bool is_pruned = false;
  bool is_failed = false;
  std::string message;
};

Result<sweep::TrialEnding> ending_of(const TellArguments& o) {
  sweep::TrialEnding ending;
  ending.message = o.message;
  if (o.is_pruned && o.is_failed) return invalid("--pruned and --failed exclude each other");
  if (o.is_pruned || o.is_failed) {
    ending.state = o.is_pruned ? sweep::TrialState::pruned : sweep::TrialState::failed;
    if (!o.values.empty())
      return invalid("trial {}: a value of a trial without a result ({})", o.trial,
                     o.is_pruned ? "--pruned" : "--failed");
    return ending;
  }
  for (const std::string& text : o.values) {
    double value = 0;
    if (!parse_number(text, &value)) return invalid("value '{}': is not a number", printable(text));
    ending.values.push_back(value);
  }
  if (ending.values.empty())
    return invalid("trial {}: no value", o.trial)
        .cure("stoker sweep tell {} {} --failed", shell_quote(o.study), shell_quote(o.trial));
  return ending;
}

Result<sweep::StudyTrial> end_trial(const TellArguments& o, Output& out) {
  STOKER_ASSIGN_OR_RETURN(ending, ending_of(o));
  STOKER_ASSIGN_OR_RETURN(number, parse_trial(o.trial));
  STOKER_ASSIGN_OR_RETURN(study, open_study(o.study, sweep::MissingStudy::refuse, out));
  STOKER_RETURN_IF_ERROR(study.tell(number, ending));
  return *study.find(number);
}

}  // namespace

int sweep_tell(std::span<const std::string> words, Output& out) {
  TellArguments o;
  Arguments arguments("sweep tell", "End a trial with the values of its objectives.");
  add_study(arguments, &o.study);
  arguments.positional("TRIAL", &o.trial, "Number of the trial");
  arguments.positional_list("VALUE", &o.values, "Value of each objective, in the order of the sweep file");
  arguments.flag("--pruned", &o.is_pruned, "The trial was stopped early");
  arguments.flag("--failed", &o.is_failed, "The trial has no result");
  arguments.option("--message", &o.message, "TEXT", "Why it failed");
  arguments.example("stoker sweep tell lr.yaml 0 0.93");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto trial = end_trial(o, out);
  if (!trial.ok()) return out.fail(trial.error());
  out.line("trial {}: {}{}", trial->number, stoker::to_text(trial->state),
           trial->message.empty() ? "" : ", " + printable(trial->message));
  out.json(format(R"({{"trial":{},"state":"{}"}})", trial->number, stoker::to_text(trial->state)));
  return exit_code::kOk;
}

}  // namespace stoker::cli
