#include "report/text.h"

#include <algorithm>
#include <cmath>

#include "report/node_tables.h"
#include "report/overview.h"
#include "report/sentence.h"
#include "report/tables.h"
#include "stoker/bytes.h"

namespace stoker::report {

namespace {

constexpr std::size_t kMaxRows = 40;

/// Display width of a UTF-8 text, with one column per character.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

void add_cell(std::string& line, std::string_view cell, std::size_t width, bool right) {
  const std::string pad(width - std::min(width, width_of(cell)), ' ');
  line += right ? pad + std::string(cell) : std::string(cell) + pad;
}

void add_table(std::string& out, const Table& table) {
  if (table.rows.empty()) return;
  out += format("\n{} ({})\n", to_lower(table.title), table.source);
  add_rows(out, table);
}

}  // namespace

void add_rows(std::string& out, const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t widest = width_of(table.columns[c].name);
    for (const auto& row : table.rows) widest = std::max(widest, width_of(row[c]));
    widths.push_back(widest);
  }
  const auto add_row = [&](const auto& cell_of) {
    std::string line = " ";
    for (std::size_t c = 0; c < widths.size(); ++c) {
      line += c == 0 ? " " : "  ";
      add_cell(line, cell_of(c), widths[c], table.columns[c].is_number);
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  };
  add_row([&](std::size_t c) -> std::string_view { return table.columns[c].name; });
  // A long table shows its last rows.
  const std::size_t skipped = table.rows.size() > kMaxRows ? table.rows.size() - kMaxRows : 0;
  if (skipped > 0) out += format("  ({} earlier rows: --format json)\n", skipped);
  for (std::size_t r = skipped; r < table.rows.size(); ++r) {
    add_row([&](std::size_t c) -> std::string_view { return table.rows[r][c]; });
  }
}

namespace {

std::pair<double, double> mean_and_peak(const std::vector<double>& values) {
  double sum = 0;
  double peak = 0;
  std::size_t count = 0;
  for (double value : values) {
    if (!std::isfinite(value)) continue;  // between attempts
    sum += value;
    peak = std::max(peak, value);
    ++count;
  }
  return {count > 0 ? sum / static_cast<double>(count) : 0, peak};
}

void add_system(std::string& out, const RunFacts& facts) {
  Table table{"Machine",
              "attempts/*/system-*.csv, one sample a second",
              {{"what"}, {"of"}, {"mean", true}, {"peak", true}, {"unit"}},
              {}};
  constexpr std::size_t kMostSeries = 4;
  for (const SystemChart& chart : facts.system) {
    std::vector<Series> shown = chart.series;
    const std::size_t count = std::max(shown.size(), chart.summarized);
    if (count > kMostSeries) {
      Series all{format("all {}", count), {}, {}};
      for (const Series& series : shown) all.y.insert(all.y.end(), series.y.begin(), series.y.end());
      shown = {std::move(all)};
    }
    for (const Series& series : shown) {
      const auto peak = mean_and_peak(series.y).second;
      // Of a summary, the mean is the second series.
      const double mean = mean_and_peak(chart.summarized > 0 ? chart.series[1].y : series.y).first;
      const bool is_bytes = chart.unit.starts_with("bytes");
      const auto text = [&](double v) {
        return is_bytes ? rounded(ByteCount{static_cast<std::uint64_t>(std::max(0.0, v))}) : significant(v);
      };
      table.rows.push_back({to_lower(chart.title), series.name, text(mean), text(peak),
                            is_bytes ? (chart.unit == "bytes/s" ? "per second" : "") : chart.unit});
    }
  }
  add_table(out, table);
}

void add_cause(std::string& out, const CauseFacts& cause) {
  out += format("  {}: {}\n", cause.is_likely ? "likely cause" : "cause", cause.text);
  for (const auto& [where, text] : cause.evidence) out += format("    {}  {}\n", where, text);
  if (!cause.cure.empty()) out += format("    try: {}\n", cause.cure);
}

void add_overview(std::string& out, const Overview& overview) {
  out += count_text(overview) + "\n";
  add_table(out, overview_table(overview, kMaxRows));
}

void add_run(std::string& out, const RunFacts& facts) {
  out += result_sentence(facts) + "\n";
  if (facts.cause) add_cause(out, *facts.cause);
  const std::vector<ProvenanceRow> all = provenance(facts);
  std::size_t widest = 0;
  for (const ProvenanceRow& fact : all) widest = std::max(widest, width_of(fact.key));
  for (const ProvenanceRow& fact : all) {
    out += "  ";
    add_cell(out, fact.key, widest, false);
    out += "  " + fact.value + "\n";
  }
  if (!facts.state.reason.empty()) out += "  " + printable(facts.state.reason) + "\n";
  if (!facts.tasks.empty()) add_table(out, overview_table(overview_of_tasks(facts), kMaxRows));
  add_table(out, attempts_table(facts));
  add_table(out, changes_table(facts));
  add_table(out, epochs_table(facts));
  add_table(out, metrics_table(facts));
  add_table(out, summary_table(facts));
  add_table(out, images_table(facts));
  add_table(out, histograms_table(facts));
  if (!facts.time.ranks.empty()) add_table(out, time_table(facts));
  add_table(out, traced_table(facts));
  if (facts.samples_per_s > 0)
    out += format("  {} samples/s while stepping\n", significant(facts.samples_per_s));
  add_table(out, efficiency_table(facts));
  add_table(out, node_quantities_table(facts));
  add_system(out, facts);
  add_table(out, gpus_table(facts));
  add_table(out, energy_table(facts));
  add_table(out, staging_table(facts));
  add_table(out, checkpoints_table(facts));
  for (const LogTail& tail : facts.logs) {
    out += format("\nend of the log of rank {} (attempts/{}/{})\n", tail.rank, tail.attempt, tail.file);
    for (const std::string& line : tail.lines) out += "  | " + line + "\n";
  }
  if (!facts.notes.empty()) out += "\nnotes\n";
  for (const std::string& note : facts.notes) out += "  " + printable(note) + "\n";
  out += "\nrun it again\n";
  for (const std::string& line : rerun_commands(facts)) out += "  " + line + "\n";
}

}  // namespace

std::string to_plain_text(std::span<const RunFacts> runs) {
  std::string out;
  if (runs.size() > 1) add_overview(out, overview_of_runs(runs));
  for (const RunFacts& facts : runs) {
    if (!out.empty()) out += "\n\n";
    add_run(out, facts);
  }
  return out;
}

}  // namespace stoker::report
