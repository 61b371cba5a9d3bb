#include "report/compare/print.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/json/json.h"
#include "report/sentence.h"
#include "report/text.h"

namespace stoker::report {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;
constexpr std::size_t kMaxCell = 60;

// With cells that fit a terminal.
Table shortened(Table table) {
  for (std::vector<std::string>& row : table.rows) {
    for (std::string& cell : row) {
      if (cell.size() > kMaxCell) cell = cell.substr(0, kMaxCell - 3) + "...";
    }
  }
  return table;
}

std::string group_text(const std::vector<std::string>& ids) {
  return ids.size() == 1 ? ids[0] : format("{} runs: {}", ids.size(), join(ids, ", "));
}

// "0.412", "0.412 ± 0.010 of 3".
std::string values_text(const std::vector<double>& values) {
  if (values.empty()) return "-";
  const std::string mean = significant(mean_of(values));
  return values.size() == 1 ? mean
                            : format("{} ± {} of {}", mean, significant(deviation_of(values)), values.size());
}

std::string change_text(const ResultChange& result) {
  const double relative = result.relative_difference();
  if (result.before.empty() || result.after.empty()) return "-";
  if (result.difference() == 0) return "none";
  if (!std::isfinite(relative))
    return format("{}{}", result.difference() > 0 ? "+" : "", significant(result.difference()));
  return format("{}{} %", relative > 0 ? "+" : "", significant(relative * 100));
}

std::string_view verdict_word(const ResultChange& result) {
  if (result.better == Better::unknown || result.before.empty() || result.after.empty()) return "";
  if (result.difference() == 0) return "equal";
  if (result.significance && result.significance->may_be_chance()) return "within chance";
  return (result.difference() < 0) == (result.better == Better::lower) ? "better" : "worse";
}

std::string chance_text(const ResultChange& result) {
  return result.significance ? format("p {}", significant(result.significance->p)) : "";
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

Json result_json(const ResultChange& result) {
  const std::string_view word = verdict_word(result);
  Json object = {{"name", result.name},
                 {"before", numbers(result.before)},
                 {"after", numbers(result.after)},
                 {"difference", number(result.difference())},
                 {"relative_difference", number(result.relative_difference())},
                 {"verdict", word.empty() ? Json(nullptr) : Json(word)}};
  object["p"] = result.significance ? number(result.significance->p) : Json(nullptr);
  object["interval"] =
      result.significance
          ? Json::array({number(result.significance->lowest), number(result.significance->highest)})
          : Json(nullptr);
  return object;
}

}  // namespace

std::string comparison_headline(const RunComparison& comparison) {
  const auto found = std::ranges::find_if(
      comparison.results, [](const ResultChange& result) { return !verdict_word(result).empty(); });
  if (found == comparison.results.end()) return "B compared with A";
  return format("{} of B: {}, {}", printable(found->name), change_text(*found), verdict_word(*found));
}

Table differences_table(const RunComparison& comparison) {
  Table table{"Differences", "job files and capsules", {{"differs"}, {"in"}, {"A"}, {"B"}}, {}};
  for (const FactChange& change : comparison.changes)
    table.rows.push_back({std::string(to_text(change.aspect)), printable(change.what),
                          printable(change.before), printable(change.after)});
  return table;
}

Table compared_results_table(const RunComparison& comparison) {
  Table table{"Results",
              "the runs' metrics",
              {{"result"}, {"A", true}, {"B", true}, {"change", true}, {"verdict"}, {"chance"}},
              {}};
  for (const ResultChange& result : comparison.results) {
    table.rows.push_back({printable(result.name), values_text(result.before), values_text(result.after),
                          change_text(result), std::string(verdict_word(result)), chance_text(result)});
  }
  return table;
}

std::string to_plain_text(const RunComparison& comparison) {
  std::string out = format("A  {}\nB  {}\n", group_text(comparison.before), group_text(comparison.after));
  const Table differences = shortened(differences_table(comparison));
  out += "\n";
  if (differences.rows.empty())
    out += format("{}\n", kNoDifferences);
  else
    add_rows(out, differences);
  const Table results = shortened(compared_results_table(comparison));
  if (!results.rows.empty()) {
    out += "\n";
    add_rows(out, results);
  }
  for (const std::string& note : comparison.notes) out += format("\nnote: {}", note);
  if (!comparison.notes.empty()) out += "\n";
  return out;
}

std::string to_json(const RunComparison& comparison, const std::vector<GuardVerdict>& guards) {
  Json object = {{"version", kVersion}, {"before", comparison.before}, {"after", comparison.after}};
  object["differences"] = Json::array();
  for (const FactChange& change : comparison.changes) {
    object["differences"].push_back({{"aspect", to_text(change.aspect)},
                                     {"what", change.what},
                                     {"before", change.before},
                                     {"after", change.after}});
  }
  object["results"] = Json::array();
  for (const ResultChange& result : comparison.results) object["results"].push_back(result_json(result));
  object["guards"] = Json::array();
  for (const GuardVerdict& guard : guards)
    object["guards"].push_back({{"met", guard.is_met}, {"text", guard.text}});
  object["notes"] = comparison.notes;
  return json_text(object);
}

}  // namespace stoker::report
