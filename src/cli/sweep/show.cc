// `stoker sweep show STUDY`: docs/commands/sweep-show.md
#include <algorithm>

#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/sweep/study_choice.h"
#include "cli/sweep/trial_list.h"
#include "sweep/analysis/importance.h"
#include "sweep/results/progress.h"
#include "sweep/results/ranking.h"
#include "sweep/results/trial_table.h"

namespace stoker::cli {
namespace {

// A row for each parameter, a column for each objective.
void print_importances(const sweep::Study& study, Output& out) {
  const sweep::Definition& definition = study.definition();
  std::vector<std::string> header = {"PARAMETER"};
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < definition.objectives.size(); ++i) {
    header.push_back(definition.objectives[i].metric);
    for (const sweep::ParameterImportance& each : sweep::importances(definition, study.trials(), i)) {
      const std::string& name = definition.space.parameters()[each.parameter].name;
      auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one[0] == name; });
      if (row == rows.end()) {
        rows.push_back({name});
        row = std::prev(rows.end());
      }
      row->resize(i + 1, "-");
      row->push_back(format("{:.0f} %", 100 * each.share));
    }
  }
  for (auto& row : rows) row.resize(header.size(), "-");
  if (rows.empty())
    out.line("importances are known from {} complete trials of different values on",
             sweep::kLeastForImportance);
  else
    out.table(header, rows);
}

}  // namespace

int sweep_show(std::span<const std::string> words, Output& out) {
  std::string text;
  std::int64_t top = 10;
  bool is_about_importance = false;
  Arguments arguments("sweep show", "Show the trials of a study, the best first.");
  add_study(arguments, &text);
  arguments.option("--top", &top, "N", "Number of trials to list, 0 for all");
  arguments.flag("--importance", &is_about_importance,
                 "Show how much each parameter decides, instead of trials");
  arguments.example("stoker sweep show lr.yaml");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto study = open_study(text, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  if (is_about_importance) {
    out.line("{}", sweep::summary_text(study->definition(), study->trials()));
    print_importances(*study, out);
    out.json(sweep::json_importances(study->definition(), study->trials()));
    return exit_code::kOk;
  }
  TrialPointers trials = ranked_trials(study->definition(), study->trials());
  const std::size_t count = trials.size();
  limit_trials(trials, top);
  out.line("{}", sweep::summary_text(study->definition(), study->trials()));
  if (!trials.empty()) print_trials(*study, trials, out);
  if (trials.size() < count) out.line("{} more (--top 0)", grouped(count - trials.size()));
  out.json(sweep::json_list(study->definition(), trials));
  return exit_code::kOk;
}

}  // namespace stoker::cli
