// `stoker sweep show STUDY` and `stoker sweep best STUDY`: docs/commands/sweep-show.md, sweep-best.md
#include "base/enum_names.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "sweep/results/ranking.h"
#include "sweep/results/trial_table.h"

namespace stoker::cli {
namespace {

using TrialPointers = std::vector<const sweep::StudyTrial*>;

std::vector<std::string> upper_case(std::vector<std::string> header) {
  for (std::string& cell : header) {
    if (cell == "trial" || cell == "state" || cell == "seconds") {
      for (char& c : cell) c = static_cast<char>(c - 'a' + 'A');
    }
  }
  return header;
}

void print_table(const sweep::Study& study, const TrialPointers& trials, Output& out) {
  const sweep::TrialTable table = trial_table(study.definition(), trials, sweep::Digits::four);
  out.table(upper_case(table.header), table.rows);
}

std::string summary(const sweep::Study& study) {
  const sweep::Definition& definition = study.definition();
  const sweep::TrialCounts counts = sweep::count_trials(study.trials());
  std::string objectives;
  for (const sweep::Objective& objective : definition.objectives)
    objectives +=
        format("{}{} {}", objectives.empty() ? "" : ", ", stoker::to_text(objective.goal), objective.metric);
  std::string text = format("{}: {}, sampler {}, {} complete", definition.name, objectives,
                            stoker::to_text(definition.sampler), counts.complete);
  if (definition.most_trials > 0) text += format(" of {}", definition.most_trials);
  if (counts.running > 0) text += format(", {} running", counts.running);
  if (counts.pruned > 0) text += format(", {} pruned", counts.pruned);
  if (counts.failed > 0) text += format(", {} failed", counts.failed);
  return text;
}

void limit(TrialPointers& trials, std::int64_t most) {
  if (most > 0 && trials.size() > static_cast<std::size_t>(most))
    trials.resize(static_cast<std::size_t>(most));
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
  limit(trials, top);
  out.line("{}", summary(*study));
  if (!trials.empty()) print_table(*study, trials, out);
  if (trials.size() < count) out.line("{} more (--top 0)", grouped(count - trials.size()));
  out.json(sweep::json_list(study->definition(), trials));
  return exit_code::kOk;
}

int sweep_best(std::span<const std::string> words, Output& out) {
  std::string text;
  std::int64_t top = 1;
  Arguments arguments("sweep best", "Show the best trials of a study.");
  add_study(arguments, &text);
  arguments.option("--top", &top, "N", "Number of trials; all of the Pareto front with several objectives");
  arguments.example("stoker sweep best lr.yaml");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto study = open_study(text, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  TrialPointers trials = best_trials(study->definition(), study->trials());
  if (trials.empty()) return out.fail(not_found("{}: no trial is complete", study->definition().name));
  if (study->definition().objectives.size() == 1) limit(trials, top);
  print_table(*study, trials, out);
  out.json(sweep::json_list(study->definition(), trials));
  return exit_code::kOk;
}

}  // namespace stoker::cli
