#include "report/html/sections.h"

#include <algorithm>
#include <cmath>

#include "base/encode.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/html/overview_section.h"
#include "report/html/timeline.h"
#include "report/node_tables.h"
#include "report/sentence.h"
#include "report/tables.h"
#include "stoker/bytes.h"
#include "stoker/time.h"

namespace stoker::report::html {

namespace {

constexpr double kSmallChart = 110;
// The other metrics are in the table.
constexpr std::size_t kMetricCharts = 24;

std::string figure(std::string_view value, std::string_view what) {
  return "<div>" + element("dt", "", what) + element("dd", "", value) + "</div>";
}

std::string best_result(const RunFacts& facts) {
  const auto& epochs = facts.learning.epochs;
  if (!epochs.empty() && std::isfinite(epochs.back().val_top1)) {
    const auto better = [](const EpochPoint& a, const EpochPoint& b) { return a.val_top1 < b.val_top1; };
    const EpochPoint& best = *std::max_element(epochs.begin(), epochs.end(), better);
    const std::string beside = best.epoch == epochs.back().epoch
                                   ? "the best epoch"
                                   : format("best {} in epoch {}", percent(best.val_top1), best.epoch + 1);
    return figure(percent(epochs.back().val_top1), "top-1 in validation, last epoch, " + beside);
  }
  const auto& steps = facts.learning.steps;
  return steps.empty()
             ? ""
             : figure(significant(steps.back().loss), format("training loss at step {}", steps.back().step));
}

std::string peak_memory(const RunFacts& facts) {
  for (const SystemChart& chart : facts.system) {
    if (chart.title != "Memory of ranks") continue;
    double peak = 0;
    for (const Series& series : chart.series) {
      for (double y : series.y) peak = std::max(peak, y);
    }
    return figure(rounded(ByteCount{static_cast<std::uint64_t>(peak)}),
                  "peak memory of a rank, sampled each second");
  }
  return "";
}

std::string figures(const RunFacts& facts) {
  std::string out = best_result(facts);
  if (facts.running_s > 0) {
    out += figure(
        seconds_text(facts.running_s),
        facts.attempts.size() > 1 ? format("running, in {} attempts", facts.attempts.size()) : "running");
  }
  if (facts.samples_per_s > 0)
    out += figure(significant(facts.samples_per_s), "samples/s while stepping, all ranks");
  if (!facts.time.ranks.empty()) {
    double waited = 0;
    double total = 0;
    for (const RankTime& rank : facts.time.ranks) {
      waited += rank.seconds_in(TimePart::data);
      total += rank.step_total();
    }
    if (total > 0) out += figure(percent(waited / total), "of the steps' time waiting for data");
    out += figure(seconds_text(facts.time.ranks.front().median_step_s), "a step, median of rank 0");
  }
  out += peak_memory(facts);
  return out.empty() ? "" : "<dl class=\"figures\">" + out + "</dl>\n";
}

/// Adds two lines over steps: the raw values and a moving average.
void add_step_lines(const std::vector<StepPoint>& steps, double StepPoint::* value, std::string_view name,
                    Chart& chart) {
  constexpr std::size_t kPoints = 400;
  Line raw{std::string(name), "s0", {}, {}, true, false};
  for (const StepPoint& point : steps) {
    if (!std::isfinite(point.*value)) continue;
    raw.x.push_back(static_cast<double>(point.step));
    raw.y.push_back(point.*value);
  }
  Line smooth = raw;
  smooth.is_faint = false;
  const std::size_t window = std::max<std::size_t>(1, raw.y.size() / 50);
  double sum = 0;
  for (std::size_t i = 0; i < raw.y.size(); ++i) {
    sum += raw.y[i];
    if (i >= window) sum -= raw.y[i - window];
    smooth.y[i] = sum / static_cast<double>(std::min(window, i + 1));
  }
  if (window > 1) smooth.name += format(", mean of {} steps", window);
  downsample(raw.x, raw.y, kPoints);
  downsample(smooth.x, smooth.y, kPoints);
  if (window > 1) chart.lines.push_back(std::move(raw));
  chart.lines.push_back(std::move(smooth));
}

void add_epoch_line(const std::vector<EpochPoint>& epochs, double EpochPoint::* value, std::string_view name,
                    std::string_view css_class, Chart& chart) {
  Line line{std::string(name), std::string(css_class), {}, {}, false, true};
  for (const EpochPoint& epoch : epochs) {
    if (!std::isfinite(epoch.*value)) continue;
    line.x.push_back(static_cast<double>(epoch.step));
    line.y.push_back(epoch.*value);
  }
  if (!line.x.empty()) chart.lines.push_back(std::move(line));
}

std::vector<ChartMark> resume_marks(const RunFacts& facts) {
  std::vector<ChartMark> marks;
  for (std::int64_t step : facts.learning.resumed_at) marks.push_back({static_cast<double>(step), "resumed"});
  return marks;
}

/// Marks at the starts of later attempts, in running time.
std::vector<ChartMark> attempt_marks(const RunFacts& facts) {
  std::vector<ChartMark> marks;
  double at = 0;
  for (std::size_t i = 0; i + 1 < facts.attempts.size(); ++i) {
    at += facts.attempts[i].seconds();
    marks.push_back({at, format("attempt {}", facts.attempts[i + 1].number)});
  }
  return marks;
}

AxisUnit unit_of(std::string_view unit) {
  return unit == "bytes"     ? AxisUnit::bytes
         : unit == "bytes/s" ? AxisUnit::bytes_per_s
         : unit == "%"       ? AxisUnit::percent
                             : AxisUnit::plain;
}

/// The mean, and with several ranks the lowest and highest value.
std::string metric_chart(const MetricCurve& curve, const RunFacts& facts) {
  constexpr std::size_t kPoints = 400;
  Chart chart;
  chart.title = printable(curve.name);
  chart.source = "points-*.csv";
  chart.x_name = "step";
  chart.height = kSmallChart;
  chart.marks = resume_marks(facts);
  const bool has_range = std::any_of(curve.points.begin(), curve.points.end(),
                                     [](const MetricPoint& point) { return point.ranks > 1; });
  const auto add = [&](std::string_view name, double MetricPoint::* value, bool is_faint) {
    Line line{std::string(name), "s0", {}, {}, is_faint, false};
    for (const MetricPoint& point : curve.points) {
      if (!std::isfinite(point.*value)) continue;
      line.x.push_back(static_cast<double>(point.step));
      line.y.push_back(point.*value);
    }
    downsample(line.x, line.y, kPoints);
    chart.lines.push_back(std::move(line));
  };
  if (has_range) {
    add("lowest rank", &MetricPoint::lowest, true);
    add("highest rank", &MetricPoint::highest, true);
  }
  add(has_range ? "mean over ranks" : "value", &MetricPoint::mean, false);
  return draw(chart);
}

std::string system_chart(const SystemChart& data, const RunFacts& facts) {
  Chart chart;
  chart.title =
      data.unit.starts_with("bytes") || data.unit == "%" ? data.title : data.title + ", " + data.unit;
  if (data.summarized > 0) chart.title += format(" ({} series)", data.summarized);
  chart.source = data.source;
  chart.x_unit = AxisUnit::seconds;
  chart.x_name = "running time";
  chart.y_unit = unit_of(data.unit);
  const double scale = chart.y_unit == AxisUnit::percent ? 0.01 : 1;
  chart.limit = data.limit * scale;
  for (std::size_t i = 0; i < data.series.size(); ++i) {
    Line line{data.series[i].name, format("s{}", i % 8), data.series[i].x, data.series[i].y, false, false};
    for (double& y : line.y) y *= scale;
    chart.lines.push_back(std::move(line));
  }
  chart.height = kSmallChart;
  chart.marks = attempt_marks(facts);
  return draw(chart);
}

std::string bars(const TimeSplit& time) {
  std::string out;
  const auto add = [&](const std::string& name, const RankTime& each, double longest, double total) {
    out += element("span", "", name) + "<div>" + draw_bar(each, longest) + "</div>" +
           element("span", "", seconds_text(total));
  };
  if (time.whole && time.whole->total() > 0)
    add("whole run", *time.whole, time.whole->total(), time.whole->total());
  double longest = 0;
  for (const RankTime& rank : time.ranks) longest = std::max(longest, rank.step_total());
  if (longest <= 0) return "";
  constexpr std::size_t kMax = 16;
  for (std::size_t i = 0; i < std::min(kMax, time.ranks.size()); ++i) {
    add(format("rank {}, steps", time.ranks[i].rank), time.ranks[i], longest, time.ranks[i].step_total());
  }
  return "<div class=\"bars\">" + out + "</div>\n";
}

/// The time table with a color swatch per part, as the legend of the bars.
std::string time_table_html(const RunFacts& facts) {
  std::string html = table_html(time_table(facts), 2);
  for (TimePart part : kAllParts) {
    const std::string plain = "<tr><td>" + std::string(to_text(part)) + "</td>";
    const std::size_t at = html.find(plain);
    if (at == std::string::npos) continue;
    html.replace(at, plain.size(),
                 format("<tr><td class=\"swatch p-{}\"><span>{}</span></td>", key_of(part), to_text(part)));
  }
  return html;
}

}  // namespace

std::string header(const RunFacts& facts) {
  std::string out = "<header>" + element("p", "over", "Stoker report of " + printable(facts.id)) +
                    element("h1", "", result_sentence(facts));
  constexpr std::string_view kGood[] = {"created", "queued", "running", "done", "stopped"};
  const bool is_bad = std::find(std::begin(kGood), std::end(kGood), facts.state_word) == std::end(kGood);
  if (!facts.state.reason.empty()) out += element("p", is_bad ? "bad" : "", printable(facts.state.reason));
  if (facts.cause) {
    out += element("p", "",
                   format("{}: {}", facts.cause->is_likely ? "Likely cause" : "Cause", facts.cause->text));
    std::string lines;
    for (const auto& [where, text] : facts.cause->evidence)
      lines += element("i", "", where) + "  " + escape_html(text) + "\n";
    if (!lines.empty()) out += "<pre>" + lines + "</pre>";
    if (!facts.cause->cure.empty()) out += element("p", "", "Cure: " + facts.cause->cure);
  }
  std::string lede;
  for (const std::string& word : facts.description.command)
    lede += (lede.empty() ? "" : " ") + shell_quote(word);
  out += element("p", "lede", printable(lede));
  if (facts.state_word == "running") {
    out += element(
        "p", "",
        "The run was still running when this page was created. The page shows its records up to then.");
  }
  return out + "</header>\n" + figures(facts);
}

std::string attempts_section(const RunFacts& facts) {
  std::string body = table_html(attempts_table(facts));
  if (const Table changes = changes_table(facts); !changes.rows.empty())
    body += element("p", "source", "Settings that changed between attempts") + table_html(changes);
  if (facts.learning.redone_steps > 0) {
    body += element(
        "p", "source",
        format("{} {} repeated, because the previous attempt ended after its last checkpoint. The curves "
               "show the repetition.",
               facts.learning.redone_steps, facts.learning.redone_steps == 1 ? "step was" : "steps were"));
  }
  return section("Outcome", "events-*.jsonl of each attempt", body);
}

std::string learning_section(const RunFacts& facts) {
  const Learning& learning = facts.learning;
  const std::string source = "metrics-*.csv, mean over ranks; epochs.csv";
  Chart loss;
  loss.title = "Loss";
  loss.source = source;
  loss.x_name = "step";
  loss.marks = resume_marks(facts);
  Chart accuracy = loss;
  accuracy.title = "Accuracy, top-1";
  accuracy.y_unit = AxisUnit::percent;
  add_step_lines(learning.steps, &StepPoint::loss, "training", loss);
  add_epoch_line(learning.epochs, &EpochPoint::val_loss, "validation", "s1", loss);
  add_step_lines(learning.steps, &StepPoint::top1, "training", accuracy);
  add_epoch_line(learning.epochs, &EpochPoint::val_top1, "validation", "s1", accuracy);
  std::string charts = draw(loss) + draw(accuracy);
  if (!charts.empty()) charts = "<div class=\"charts\">" + charts + "</div>";
  const std::string epochs = table_html(epochs_table(facts));
  return section("Learning", "metrics-*.csv and epochs.csv of each attempt",
                 charts + (epochs.empty() ? "" : "<h3>Epochs</h3>" + epochs));
}

std::string metrics_section(const RunFacts& facts) {
  const Table table = metrics_table(facts);
  const Table summary = summary_table(facts);
  std::string charts;
  std::size_t drawn = 0;
  for (const MetricCurve& curve : facts.metrics) {
    if (drawn == kMetricCharts) break;
    const std::string chart = metric_chart(curve, facts);
    charts += chart;
    drawn += chart.empty() ? 0 : 1;
  }
  if (!charts.empty()) charts = "<div class=\"charts small\">" + charts + "</div>";
  std::string body = charts + table_html(table);
  if (!summary.rows.empty()) body += "<h3>Summary</h3>" + table_html(summary);
  return section("Metrics", "points-*.csv of each attempt, mean over ranks", body);
}

std::string time_section(const RunFacts& facts) {
  if (facts.time.ranks.empty()) return "";
  std::string body = bars(facts.time);
  body += "<h3>Seconds</h3>" + time_table_html(facts);
  body += element("p", "source",
                  "Parts do not overlap: communication is the part not hidden behind backward, other is step "
                  "time outside of all parts. The whole run covers every second of all attempts on rank 0. "
                  "Validation comes from epochs.csv; start-up and rest is the remainder.");
  return section("Where the time went", "metrics-*.csv, summed over attempts", body);
}

std::string traced_section(const RunFacts& facts) {
  if (!facts.traced) return "";
  constexpr std::size_t kMax = 16;
  const TracedStep& traced = *facts.traced;
  std::string body = draw_timeline(traced, kMax);
  if (body.empty()) return "";
  body += "<h3>Milliseconds</h3>" + table_html(traced_table(facts));
  body += element("p", "source",
                  format("Step {} of epoch {} in attempt {}, the median of {} steps that all ranks traced. "
                         "Ranks of several hosts share one axis, as far as their clocks agree. Open the "
                         "whole trace in Perfetto (ui.perfetto.dev).",
                         traced.step, traced.epoch + 1, traced.attempt, traced.candidates));
  return section("A step", format("trace-*.json of attempt {}", traced.attempt), body);
}

std::string machine_section(const RunFacts& facts) {
  std::string charts;
  if (!facts.speed.empty()) {
    Chart speed;
    speed.title = "Samples/s, all ranks";
    speed.source = "metrics-*.csv: samples / step_s of the slowest rank";
    speed.x_unit = AxisUnit::seconds;
    speed.x_name = "running time";
    speed.height = kSmallChart;
    speed.marks = attempt_marks(facts);
    for (const Series& series : facts.speed)
      speed.lines.push_back({series.name, "s0", series.x, series.y, false, false});
    charts += draw(speed);
  }
  for (const SystemChart& chart : facts.system) charts += system_chart(chart, facts);
  const std::string gpus = table_html(gpus_table(facts));
  if (!charts.empty()) charts = "<div class=\"charts small\">" + charts + "</div>";
  std::string tables;
  const auto add = [&](std::string_view title, const std::string& html) {
    if (!html.empty()) tables += element("h3", "", title) + html;
  };
  add("Efficiency", table_html(efficiency_table(facts)));
  add("Nodes", table_html(nodes_table(facts), facts.nodes.size() > 1 ? 3 : 0));
  add("GPUs", gpus);
  add("Energy", table_html(energy_table(facts)));
  add("Staged data", table_html(staging_table(facts)));
  if (charts.empty() && tables.empty()) return "";
  return section("Speed and machine", "metrics-*.csv; system-*.csv, one sample a second", tables + charts);
}

std::string checkpoints_section(const RunFacts& facts) {
  return section("Checkpoints", "events-*.jsonl: checkpoint_saved", table_html(checkpoints_table(facts)));
}

std::string logs_section(const RunFacts& facts) {
  const bool has_curves = !facts.learning.steps.empty();
  if (has_curves && facts.state_word == "done") return "";
  std::string body;
  for (const LogTail& tail : facts.logs) {
    body += element("h3", "", format("Rank {}, attempt {}", tail.rank, tail.attempt));
    std::string lines;
    for (const std::string& line : tail.lines) lines += escape_html(line) + "\n";
    body += "<pre>" + lines + "</pre>";
  }
  return section("End of the logs", "rank-*.log of the last attempt", body);
}

std::string facts_section(const RunFacts& facts) {
  std::string body = "<dl class=\"facts\">";
  for (const ProvenanceRow& fact : provenance(facts)) {
    body += element("dt", "", fact.key) + "<dd>" + escape_html(fact.value) +
            element("small", "", fact.source) + "</dd>";
  }
  return section("What ran", "run.json and capsule/", body + "</dl>");
}

std::string rerun_section(const RunFacts& facts) {
  std::string lines;
  for (const std::string& line : rerun_commands(facts)) {
    lines += (line.starts_with('#') ? element("i", "", line) : escape_html(line)) + "\n";
  }
  return section("Run it again", "", "<pre class=\"copy\">" + lines + "</pre>");
}

std::string tasks_sections(const RunFacts& facts) { return overview_sections(overview_of_tasks(facts)); }

std::string notes_section(const RunFacts& facts) {
  std::string body;
  for (const std::string& note : facts.notes) body += element("p", "", printable(note));
  return section("Warnings", "reading the run folder", body);
}

}  // namespace stoker::report::html
