// `stoker sweep best STUDY`: docs/commands/sweep-best.md
#include <algorithm>
#include <array>

#include "base/encode.h"
#include "base/enum_names.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/run_request.h"
#include "cli/runs.h"
#include "cli/sweep/study_choice.h"
#include "cli/sweep/trial_list.h"
#include "sweep/results/ranking.h"
#include "sweep/results/trial_table.h"
#include "trials/rerun.h"

namespace stoker::cli {
namespace {

constexpr std::array<std::string_view, 4> kBestFormats = {"table", "csv", "json", "markdown"};

std::string verdict_text(const trials::TrialRerun& rerun) {
  const std::string percent = format("{:.2f} %", 100 * rerun.difference);
  switch (rerun.verdict) {
    case trials::RerunVerdict::equal:
      return format("same result, difference {}", percent);
    case trials::RerunVerdict::within_spread:
      return format("difference {}, within the spread of {}", percent, counted(rerun.after.size(), "rerun"));
    case trials::RerunVerdict::within_seeds:
      return format("difference {}, within the spread of the seeds", percent);
    case trials::RerunVerdict::different:
      break;
  }
  return format("different result, by {} ({})", percent, counted(rerun.after.size(), "rerun"));
}

void print_rerun(const sweep::StudyTrial& trial, const trials::TrialRerun& rerun, Output& out) {
  std::string values;
  for (const double value : rerun.values.back())
    values += format("{}{:.4g}", values.empty() ? "" : ", ", value);
  out.line("trial {}: {}   {}", trial.number, values, verdict_text(rerun));
  for (const launch::Drift& drift : rerun.drift) out.line("  {}", launch::to_text(drift));
  if (rerun.verdict == trials::RerunVerdict::different)
    out.line("  next  stoker compare {} {}", display_path(rerun.before.folder()),
             display_path(rerun.after.back().folder()));
}

// One after the other. The exit code is 1 when a result is different.
int rerun_all(const sweep::Study& study, const TrialPointers& chosen, Output& out) {
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  const ScopedStopSignals signals;
  auto scheduler = make_scheduler();
  trials::RerunOptions options{.stoker = *program, .on_event = {}, .should_stop = stop_requested};
  options.on_event = [&out](const std::string& text) { out.note("{}", text); };
  int code = exit_code::kOk;
  std::string json;
  for (const sweep::StudyTrial* trial : chosen) {
    const auto rerun = trials::rerun_trial(study, *trial, options, scheduler);
    if (!rerun.ok()) return out.fail(rerun.error());
    print_rerun(*trial, *rerun, out);
    if (rerun->verdict == trials::RerunVerdict::different) code = exit_code::kFailed;
    json += format(R"({}{{"number":{},"run":{},"reruns":{},"difference":{},"verdict":"{}"}})",
                   json.empty() ? "" : ",", trial->number, json_string(rerun->before.id()),
                   rerun->after.size(), rerun->difference, stoker::to_text(rerun->verdict));
  }
  out.json(format("[{}]", json));
  return code;
}

}  // namespace

int sweep_best(std::span<const std::string> words, Output& out) {
  std::string text;
  std::int64_t top = 1;
  bool has_rerun = false;
  std::string table_format = "table";
  Arguments arguments("sweep best", "Show the best trials of a study, or run them again.");
  add_study(arguments, &text);
  arguments.option("-k,--top", &top, "N",
                   "Number of trials; all of the Pareto front with several objectives");
  arguments.option("--format", &table_format, "FORMAT", "Format: table, csv, json or markdown");
  arguments.choices(kBestFormats);
  arguments.flag("--rerun", &has_rerun, "Run them again and compare the results");
  arguments.example("stoker sweep best lr.yaml");
  arguments.example("stoker sweep best lr.yaml -k 5 --format csv");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (std::find(kBestFormats.begin(), kBestFormats.end(), table_format) == kBestFormats.end())
    return out.fail(invalid("--format '{}': is unknown{}", printable(table_format),
                            suggestion(table_format, kBestFormats)));
  const auto study = open_study(text, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  TrialPointers trials = best_trials(study->definition(), study->trials());
  if (trials.empty()) return out.fail(not_found("{}: no trial is complete", study->definition().name));
  if (study->definition().objectives.size() == 1) limit_trials(trials, top);
  if (has_rerun) return rerun_all(*study, trials, out);
  if (table_format == "table") {
    print_trials(*study, trials, out);
  } else {
    out.raw(sweep::exported(study->definition(), trials, table_format));
  }
  out.json(sweep::json_list(study->definition(), trials));
  return exit_code::kOk;
}

}  // namespace stoker::cli
