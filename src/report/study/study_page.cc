#include "report/study/study_page.h"

#include "base/encode.h"
#include "base/enum_names.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/version.h"
#include "report/html/frame.h"
#include "report/html/markup.h"
#include "report/html/style.h"
#include "report/sentence.h"
#include "report/study/plot.h"
#include "report/study/study_plots.h"
#include "report/tables.h"
#include "stoker/time.h"
#include "sweep/results/progress.h"
#include "sweep/results/trial_table.h"

namespace stoker::report::study {

namespace {

constexpr std::size_t kMostRows = 500;
constexpr std::size_t kMostBest = 10;
constexpr std::size_t kMostFailures = 50;
constexpr std::size_t kMostNumbers = 20;

std::string figure(const std::string& value, std::string_view what) {
  return "<div>" + html::element("dt", "", what) + html::element("dd", "", value) + "</div>";
}

std::string figures(const StudyView& view) {
  std::string out;
  const std::vector<sweep::Objective>& objectives = view.definition.objectives;
  for (std::size_t i = 0; i < view.objectives(); ++i) {
    const auto improvements = sweep::improvements(view.definition, view.trials, i);
    if (improvements.empty()) continue;
    const sweep::Improvement& best = improvements.back();
    out +=
        figure(four_digits(best.value),
               format("{} {}, trial {}", objectives[i].goal == sweep::Goal::minimize ? "smallest" : "largest",
                      printable(objectives[i].metric), best.trial->number));
  }
  const std::uint64_t most = view.definition.most_trials;
  out +=
      figure(grouped(view.counts.complete), most > 0 ? format("complete, of {}", grouped(most)) : "complete");
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) out += figure(grouped(count), what);
  };
  add(view.counts.running, "running");
  add(view.counts.pruned, "pruned");
  add(view.counts.failed, "failed");
  add(sweep::skipped_points(view.trials), "points skipped, because they had been tried");
  double seconds = 0;
  for (const sweep::StudyTrial& trial : view.trials)
    seconds += trial.ended > 0 ? trial.ended - trial.started : 0;
  if (seconds > 0) out += figure(seconds_text(seconds), "running time of all trials");
  return "<dl class=\"figures\">" + out + "</dl>\n";
}

std::string header(const StudyView& view) {
  const sweep::Definition& definition = view.definition;
  std::string lede;
  for (const sweep::Objective& objective : definition.objectives)
    lede += format("{}{} {}", lede.empty() ? "" : ", ", stoker::to_text(objective.goal),
                   printable(objective.metric));
  lede += format("; {}; sampler {}", counted(definition.space.parameters().size(), "parameter"),
                 sampler_name(definition));
  if (definition.pruner.kind != sweep::PrunerKind::none)
    lede += format(", pruner {}", stoker::to_text(definition.pruner.kind));
  return "<header>" + html::element("p", "over", "Stoker report of the study " + definition.name) +
         html::element("h1", "", study_sentence(view)) + html::element("p", "lede", lede) + "</header>\n" +
         figures(view);
}

Table table_of(const StudyView& view, std::span<const sweep::StudyTrial* const> trials) {
  const sweep::TrialTable cells = sweep::trial_table(view.definition, trials, sweep::Digits::four);
  Table table;
  for (const std::string& name : cells.header)
    table.columns.push_back({.name = printable(name), .is_number = name != "state"});
  for (const auto& row : cells.rows) {
    table.rows.emplace_back();
    for (const std::string& cell : row) table.rows.back().push_back(printable(cell));
  }
  return table;
}

std::string best_section(const StudyView& view) {
  const bool is_front = view.definition.objectives.size() > 1;
  const std::size_t count = std::min(view.best.size(), is_front ? kMostRows : kMostBest);
  return html::section(
      is_front ? "Pareto front" : "Best trials", "journal/*.log of the study",
      front_plot(view) + html::table_html(table_of(view, std::span(view.best).subspan(0, count))));
}

// The part of each objective, with its name where there are several.
template <typename Part>
std::string per_objective(const StudyView& view, const Part& part) {
  std::string body;
  for (std::size_t i = 0; i < view.objectives(); ++i) {
    const std::string own = part(i);
    if (own.empty()) continue;
    if (view.objectives() > 1)
      body += html::element("h3", "", printable(view.definition.objectives[i].metric));
    body += own;
  }
  return body;
}

std::string history_section(const StudyView& view) {
  std::string plots;
  for (std::size_t i = 0; i < view.objectives(); ++i) plots += history_plot(view, i);
  return html::section("History", "the trials' values",
                       plots.empty() ? "" : "<div class=\"charts\">" + plots + "</div>");
}

std::string importance_section(const StudyView& view) {
  std::string body = per_objective(view, [&](std::size_t i) { return importance_bars(view, i); });
  if (!body.empty())
    body += html::element(
        "p", "source",
        "PED-ANOVA: how much the best tenth of the complete trials differs in a parameter from all of "
        "them. A conditional parameter counts where it is active.");
  if (body.empty() && view.counts.complete > 0)
    body = html::element(
        "p", "source",
        format("Known from {} complete trials of different values on.", sweep::kLeastForImportance));
  return html::section("Importance of the parameters", "values of complete trials", body);
}

std::string slices_section(const StudyView& view) {
  return html::section("Slices", "values of complete trials",
                       per_objective(view, [&](std::size_t i) { return slice_plots(view, i); }));
}

std::string contours_section(const StudyView& view) {
  return html::section("Contours", "a Gaussian process over at most 100 of the complete trials",
                       per_objective(view, [&](std::size_t i) { return contour_plots(view, i); }));
}

std::string failures_section(const StudyView& view) {
  Table table{.title = "",
              .source = "",
              .columns = {{.name = "trials", .is_number = true}, {.name = "numbers"}, {.name = "reason"}},
              .rows = {}};
  const std::vector<sweep::FailureGroup> groups = sweep::failures(view.trials);
  for (const sweep::FailureGroup& group : groups) {
    if (table.rows.size() == kMostFailures) break;
    std::string numbers;
    for (std::size_t i = 0; i < std::min(kMostNumbers, group.trials.size()); ++i)
      numbers += format("{}{}", numbers.empty() ? "" : ", ", group.trials[i]);
    if (group.trials.size() > kMostNumbers) numbers += ", …";
    table.rows.push_back({grouped(group.trials.size()), numbers,
                          group.message.empty() ? "no reason was given" : printable(group.message)});
  }
  std::string body = html::table_html(table);
  if (groups.size() > table.rows.size())
    body += html::element("p", "source", format("{} more reasons.", groups.size() - table.rows.size()));
  return html::section("Failed trials", "messages of failed trials", body);
}

std::string trials_section(const StudyView& view) {
  const std::size_t count = std::min(kMostRows, view.ranked.size());
  std::string body = html::table_html(table_of(view, std::span(view.ranked).subspan(0, count)));
  if (count < view.ranked.size())
    body += html::element(
        "p", "source",
        format("{} of {} trials. All of them: stoker sweep export", count, grouped(view.ranked.size())));
  return html::section("Trials", "journal/*.log; the best first, then pruned, running and failed ones", body);
}

std::string footer(const sweep::Study& study, double now) {
  const WallTime time(std::chrono::duration_cast<Duration>(Seconds(now)));
  const std::string folder = printable(study.folder().string());
  return html::element("footer", "",
                       format("Created by stoker {} at {} from {}. As JSON: stoker sweep page {} --json",
                              version(), utc_text(time), folder, shell_quote(folder)));
}

}  // namespace

std::string study_page(const sweep::Study& study, const StudyView& view, double now) {
  const std::string_view styles[] = {html::kStyle, kPlotStyle};
  const std::string_view scripts[] = {kPlotScript};
  return html::page_head(study_sentence(view), styles, scripts) + "<main>\n" + header(view) +
         best_section(view) + history_section(view) + importance_section(view) + slices_section(view) +
         contours_section(view) + html::section("Curves", "reports of trials", curves_plot(view)) +
         html::section("Parameters together", "values of complete trials", parallel_plot(view)) +
         failures_section(view) + trials_section(view) + footer(study, now) + "\n</main>\n" +
         html::page_end(scripts);
}

std::string study_json(const StudyView& view) {
  using Json = nlohmann::ordered_json;
  const sweep::Definition& definition = view.definition;
  Json objectives = Json::object(), failures = Json::array();
  for (const sweep::Objective& objective : definition.objectives)
    objectives[objective.metric] = stoker::to_text(objective.goal);
  for (const sweep::FailureGroup& group : sweep::failures(view.trials))
    failures.push_back({{"message", group.message}, {"trials", group.trials}});
  const std::size_t best =
      definition.objectives.size() > 1 ? view.best.size() : std::min<std::size_t>(1, view.best.size());
  return json_text(
      Json{{"study", definition.name},
           {"objectives", objectives},
           {"counts",
            {{"complete", view.counts.complete},
             {"pruned", view.counts.pruned},
             {"running", view.counts.running},
             {"failed", view.counts.failed}}},
           {"skipped", sweep::skipped_points(view.trials)},
           {"best", parse_json<Json>(sweep::json_list(definition, std::span(view.best).subspan(0, best)))},
           {"importances", parse_json<Json>(sweep::json_importances(definition, view.trials))},
           {"failures", failures}});
}

}  // namespace stoker::report::study
