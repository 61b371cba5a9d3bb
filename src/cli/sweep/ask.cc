// `stoker sweep ask STUDY`: docs/commands/sweep-ask.md
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "sweep/results/trial_table.h"

namespace stoker::cli {

int sweep_ask(std::span<const std::string> words, Output& out) {
  std::string text;
  std::string retry;
  sweep::NewStudyOptions creation;
  Arguments arguments("sweep ask", "Start a trial and print its parameters.");
  add_study(arguments, &text);
  arguments.option("--retry", &retry, "TRIAL", "Start a failed trial again instead of a new one");
  arguments.option("--warm-start", &creation.warm_start, "SOURCE",
                   "Study or CSV table whose trials the sampler of the new study knows");
  arguments.option("--param", &creation.parameters, "OVERRIDE",
                   "Parameter of a new study without a sweep file, in Hydra's grammar");
  arguments.option("--objective", &creation.objectives, "NAME=GOAL",
                   "Objective of a new study without a sweep file: minimize or maximize");
  arguments.example("stoker sweep ask lr.yaml");
  if (const auto code = arguments.parse(words, out)) return *code;
  auto study = open_study(text, sweep::MissingStudy::create, out, creation);
  if (!study.ok()) return out.fail(study.error());
  std::optional<sweep::Proposal> proposal;
  if (retry.empty()) {
    auto asked = study->ask();
    if (!asked.ok()) return out.fail(asked.error());
    proposal = *std::move(asked);
  } else {
    const auto number = parse_trial(retry);
    if (!number.ok()) return out.fail(number.error());
    auto again = study->retry(*number);
    if (!again.ok()) return out.fail(again.error());
    proposal = *std::move(again);
  }
  if (!proposal) {
    const sweep::Definition& definition = study->definition();
    return out.fail(
        not_found("{}: no trial is left ({})", definition.name,
                  study->is_full() ? format("trials: {}", definition.most_trials) : "every point was tried"));
  }
  out.line("trial {}: {}", proposal->number, sweep::to_text(proposal->values));
  out.json(format(R"({{"trial":{},"attempt":{},"values":{}}})", proposal->number, proposal->attempt,
                  sweep::json_values(proposal->values)));
  return exit_code::kOk;
}

}  // namespace stoker::cli
