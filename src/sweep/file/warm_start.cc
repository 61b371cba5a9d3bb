#include "sweep/file/warm_start.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/csv.h"
#include "base/file.h"
#include "base/language/counted.h"
#include "sweep/file/open_study.h"

namespace stoker::sweep {

namespace {

// The point of these values, or nullopt if the space does not have it.
std::optional<Coordinates> fitting_point(const Space& space, const Assignment& values) {
  auto point = space.encode(values);
  if (!point || !space.is_feasible(*point)) return std::nullopt;
  for (std::size_t i = 0; i < point->size(); ++i) {
    if (std::isnan((*point)[i]) && space.is_active(i, *point)) return std::nullopt;
  }
  return *std::move(point);
}

// The value of a parameter that a cell of a table has. Text for which it has none, else.
Value value_of_cell(const Parameter& parameter, const std::string& cell) {
  if (const auto* const choices = std::get_if<Choices>(&parameter.domain)) {
    for (const Value& value : choices->values) {
      if (to_text(value) == cell) return value;
    }
  }
  double number = 0;
  if (parse_number(cell, &number)) return number;
  return cell;
}

std::string note_on(std::string_view source, std::size_t fitting, std::size_t outside) {
  std::string note = format("{}: {} for the sampler", source, counted(fitting, "trial"));
  if (outside > 0) note += format(", {} outside the space left out", outside);
  return note;
}

Status no_objective(std::string_view source, const Objective& objective) {
  return invalid("{}: has no {} (objectives)", source, objective.metric);
}

Result<PriorTrials> prior_of_study(const Definition& definition, const std::string& source,
                                   const Path& path) {
  STOKER_ASSIGN_OR_RETURN(opened, open_study(path, MissingStudy::refuse));
  const Definition& other = opened.study.definition();
  std::vector<std::size_t> places;
  for (const Objective& objective : definition.objectives) {
    const auto found = std::find_if(other.objectives.begin(), other.objectives.end(),
                                    [&](const Objective& known) { return known.metric == objective.metric; });
    if (found == other.objectives.end()) return no_objective(source, objective);
    places.push_back(static_cast<std::size_t>(found - other.objectives.begin()));
  }
  PriorTrials prior{.trials = {}, .notes = std::move(opened.notes)};
  std::size_t outside = 0;
  for (const StudyTrial& trial : opened.study.trials()) {
    if (trial.state != TrialState::complete) continue;
    auto point = fitting_point(definition.space, other.space.decode(trial.point));
    if (!point) {
      ++outside;
      continue;
    }
    StudyTrial known{.state = TrialState::complete, .origin = source, .point = *std::move(point)};
    for (const std::size_t place : places) known.values.push_back(trial.values[place]);
    known.started = trial.started;
    known.ended = trial.ended;
    prior.trials.push_back(std::move(known));
  }
  prior.notes.push_back(note_on(source, prior.trials.size(), outside));
  return prior;
}

// What a column of a table is.
struct TableColumns {
  std::vector<std::optional<std::size_t>> parameters;  // a place in the space for each column
  std::vector<std::size_t> objectives;                 // a column for each objective
  std::optional<std::size_t> state;
  std::vector<std::string> others;
};

Result<TableColumns> columns_of(const Definition& definition, std::string_view source,
                                const std::vector<std::string>& header) {
  TableColumns columns;
  for (const Objective& objective : definition.objectives) {
    const auto found = std::find(header.begin(), header.end(), objective.metric);
    if (found == header.end()) return no_objective(source, objective);
    columns.objectives.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  for (std::size_t i = 0; i < header.size(); ++i) {
    columns.parameters.push_back(definition.space.find(header[i]));
    if (columns.parameters[i]) continue;
    if (header[i] == "state") columns.state = i;
    const bool is_objective =
        std::find(columns.objectives.begin(), columns.objectives.end(), i) != columns.objectives.end();
    if (!is_objective && header[i] != "trial" && header[i] != "state" && header[i] != "seconds")
      columns.others.push_back(header[i]);
  }
  return columns;
}

// The trial of a row, nullopt if it did not complete. Its point is empty if it does not fit.
Result<std::optional<StudyTrial>> trial_of_row(const Definition& definition, const TableColumns& columns,
                                               const std::vector<std::string>& cells) {
  if (columns.state && cells[*columns.state] != "complete") return std::optional<StudyTrial>();
  StudyTrial trial{.state = TrialState::complete};
  for (const std::size_t column : columns.objectives) {
    double value = 0;
    if (!parse_number(cells[column], &value) || !std::isfinite(value))
      return invalid("value '{}': is not a number", printable(cells[column]));
    trial.values.push_back(value);
  }
  Assignment values;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!columns.parameters[i] || cells[i].empty()) continue;
    const Parameter& parameter = definition.space.parameters()[*columns.parameters[i]];
    values.emplace_back(parameter.name, value_of_cell(parameter, cells[i]));
  }
  trial.point = fitting_point(definition.space, values).value_or(Coordinates());
  return std::optional(std::move(trial));
}

}  // namespace

Result<PriorTrials> parse_prior_table(const Definition& definition, std::string_view name,
                                      std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::size_t line = 1;
  STOKER_ASSIGN_OR_RETURN(header, next_csv_row(name, text, &line));
  STOKER_ASSIGN_OR_RETURN(columns, columns_of(definition, name, header));
  PriorTrials prior;
  std::size_t outside = 0;
  while (!text.empty()) {
    const std::size_t at = line;
    STOKER_ASSIGN_OR_RETURN(cells, next_csv_row(name, text, &line));
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (cells.size() != header.size())
      return invalid("{}:{}: {} in a row of {}", name, at, counted(cells.size(), "cell"),
                     counted(header.size(), "column"));
    auto trial = trial_of_row(definition, columns, cells);
    if (!trial) return std::move(trial).error().with_context(format("{}:{}", name, at));
    if (!*trial) continue;
    if ((*trial)->point.empty() && !definition.space.parameters().empty()) {
      ++outside;
      continue;
    }
    (*trial)->origin = name;
    prior.trials.push_back(**std::move(trial));
  }
  if (!columns.others.empty())
    prior.notes.push_back(format("{}: no parameters, not read: {}", name, join(columns.others, ", ")));
  prior.notes.push_back(note_on(name, prior.trials.size(), outside));
  return prior;
}

Result<PriorTrials> read_prior_trials(const Definition& definition, const Path& folder) {
  PriorTrials all;
  for (const std::string& source : definition.warm_start) {
    const Path path = folder / source;
    PriorTrials read;
    if (path.extension() == ".csv") {
      STOKER_ASSIGN_OR_RETURN(text, read_file(path));
      STOKER_ASSIGN_OR_RETURN(table, parse_prior_table(definition, source, text));
      read = std::move(table);
    } else {
      STOKER_ASSIGN_OR_RETURN(study, prior_of_study(definition, source, path));
      read = std::move(study);
    }
    std::move(read.trials.begin(), read.trials.end(), std::back_inserter(all.trials));
    std::move(read.notes.begin(), read.notes.end(), std::back_inserter(all.notes));
  }
  for (std::size_t i = 0; i < all.trials.size(); ++i) all.trials[i].number = i;
  return all;
}

}  // namespace stoker::sweep
