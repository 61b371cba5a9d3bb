#include "sweep/results/trial_table.h"

#include <algorithm>
#include <cmath>

#include "base/enum_names.h"
#include "base/json/json.h"
#include "base/table.h"
#include "stoker/text.h"
#include "sweep/results/spread.h"
#include "sweep/space/space_json.h"

namespace stoker::sweep {

namespace {

using Json = nlohmann::ordered_json;

std::string number_text(double number, Digits digits) {
  if (digits == Digits::exact || std::isnan(number)) return to_text(Value(number));
  return format("{:.4g}", number);
}

std::string value_text(const Value& value, Digits digits) {
  const double* const number = std::get_if<double>(&value);
  return number == nullptr ? to_text(value) : number_text(*number, digits);
}

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
  return cell;
}

template <typename Cell>
void append_row(std::string& text, const std::vector<std::string>& cells, std::string_view separator,
                const Cell& cell) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text += separator;
    text += cell(cells[i]);
  }
}

Json json_number(double number) { return std::isfinite(number) ? Json(number) : Json(); }

Json json_of_trial(const Definition& definition, const StudyTrial& trial) {
  Json values = Json::object();
  for (std::size_t i = 0; i < trial.values.size(); ++i)
    values[definition.objectives[i].metric] = json_number(trial.values[i]);
  Json reports = Json::array();
  for (const auto& [step, value] : trial.reports) reports.push_back({step, json_number(value)});
  Json spread = Json::object(), seeds = Json::object();
  for (std::size_t i = 0; i < definition.objectives.size(); ++i)
    spread[definition.objectives[i].metric] = json_number(spread_of(trial, i));
  for (const auto& [seed, own] : trial.seeds) {
    for (std::size_t i = 0; i < std::min(own.size(), definition.objectives.size()); ++i)
      seeds[format("{}", seed)][definition.objectives[i].metric] = json_number(own[i]);
  }
  Json json{{"number", trial.number},
            {"attempt", trial.attempt},
            {"state", stoker::to_text(trial.state)},
            {"values", values},
            {"params", json_of(definition.space.decode(trial.point))},
            {"reports", reports},
            {"origin", trial.origin},
            {"started", trial.started},
            {"ended", trial.ended > 0 ? Json(trial.ended) : Json()},
            {"message", trial.message}};
  if (!definition.seeds.empty()) {
    json["spread"] = spread;
    json["seeds"] = seeds;
  }
  return json;
}

}  // namespace

TrialTable trial_table(const Definition& definition, std::span<const StudyTrial* const> trials,
                       Digits digits) {
  TrialTable table{.header = {"trial", "state"}, .rows = {}};
  const bool has_seeds = !definition.seeds.empty();
  for (const Objective& objective : definition.objectives) {
    table.header.push_back(objective.metric);
    if (has_seeds) table.header.push_back(objective.metric + "_spread");
  }
  for (const Parameter& parameter : definition.space.parameters()) table.header.push_back(parameter.name);
  table.header.emplace_back("seconds");
  for (const StudyTrial* trial : trials) {
    std::vector<std::string> row = {format("{}", trial->number), std::string(stoker::to_text(trial->state))};
    for (std::size_t i = 0; i < definition.objectives.size(); ++i) {
      const bool has_value = i < trial->values.size();
      row.push_back(has_value ? number_text(trial->values[i], digits) : "");
      if (!has_seeds) continue;
      const double spread = spread_of(*trial, i);
      row.push_back(has_value && !std::isnan(spread) ? number_text(spread, digits) : "");
    }
    const Assignment values = definition.space.decode(trial->point);
    auto next = values.begin();
    for (const Parameter& parameter : definition.space.parameters()) {
      const bool is_active = next != values.end() && next->first == parameter.name;
      row.push_back(is_active ? value_text(next->second, digits) : "");
      if (is_active) ++next;
    }
    row.push_back(trial->ended > 0 ? format("{:.1f}", trial->ended - trial->started) : "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string csv_text(const TrialTable& table) {
  std::string text;
  append_row(text, table.header, ",", csv_field);
  text += "\r\n";
  for (const auto& row : table.rows) {
    append_row(text, row, ",", csv_field);
    text += "\r\n";
  }
  return text;
}

std::string markdown_text(const TrialTable& table) {
  std::string text = "| ";
  append_row(text, table.header, " | ", markdown_cell);
  text += " |\n|";
  for (std::size_t i = 0; i < table.header.size(); ++i) text += "---|";
  text += '\n';
  for (const auto& row : table.rows) {
    text += "| ";
    append_row(text, row, " | ", markdown_cell);
    text += " |\n";
  }
  return text;
}

std::string json_object(const Definition& definition, const StudyTrial& trial) {
  return json_text(json_of_trial(definition, trial));
}

std::string json_list(const Definition& definition, std::span<const StudyTrial* const> trials) {
  Json list = Json::array();
  for (const StudyTrial* trial : trials) list.push_back(json_of_trial(definition, *trial));
  return json_text(list);
}

std::string exported(const Definition& definition, std::span<const StudyTrial* const> trials,
                     std::string_view file_format) {
  if (file_format == "json") return json_list(definition, trials) + "\n";
  const TrialTable table = trial_table(definition, trials, Digits::exact);
  return file_format == "csv" ? csv_text(table) : markdown_text(table);
}

std::string json_values(const Assignment& values) { return json_text(json_of(values)); }

}  // namespace stoker::sweep
