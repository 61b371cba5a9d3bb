// `stoker sweep show STUDY`: docs/commands/sweep-show.md
#include "base/enum_names.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "cli/sweep/trial_list.h"
#include "sweep/results/ranking.h"
#include "sweep/results/trial_table.h"

namespace stoker::cli {
namespace {

std::string summary(const sweep::Study& study) {
  const sweep::Definition& definition = study.definition();
  const sweep::TrialCounts counts = sweep::count_trials(study.trials());
  std::string objectives;
  for (const sweep::Objective& objective : definition.objectives)
    objectives +=
        format("{}{} {}", objectives.empty() ? "" : ", ", stoker::to_text(objective.goal), objective.metric);
  std::string text = format("{}: {}, sampler {}, {} complete", definition.name, objectives,
                            sampler_name(definition), counts.complete);
  if (definition.most_trials > 0) text += format(" of {}", definition.most_trials);
  if (counts.running > 0) text += format(", {} running", counts.running);
  if (counts.pruned > 0) text += format(", {} pruned", counts.pruned);
  if (counts.failed > 0) text += format(", {} failed", counts.failed);
  return text;
}

}  // namespace

int sweep_show(std::span<const std::string> words, Output& out) {
  std::string text;
  std::int64_t top = 10;
  Arguments arguments("sweep show", "Show the trials of a study, the best first.");
  add_study(arguments, &text);
  arguments.option("--top", &top, "N", "Number of trials to list, 0 for all");
  arguments.example("stoker sweep show lr.yaml");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto study = open_study(text, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  TrialPointers trials = ranked_trials(study->definition(), study->trials());
  const std::size_t count = trials.size();
  limit_trials(trials, top);
  out.line("{}", summary(*study));
  if (!trials.empty()) print_trials(*study, trials, out);
  if (trials.size() < count) out.line("{} more (--top 0)", grouped(count - trials.size()));
  out.json(sweep::json_list(study->definition(), trials));
  return exit_code::kOk;
}

}  // namespace stoker::cli
