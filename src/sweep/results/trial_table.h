// Trials as a table: for terminals, CSV, Markdown and JSON. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/study/definition.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// Rows of text under a header.
struct TrialTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

/// One row for each trial: number, state, objectives, parameters and seconds. With Definition::seeds, each
/// objective is followed by its standard deviation over the seeds. A cell without a value is empty. With four
/// digits for a terminal, else exact.
enum class Digits { four, exact };
TrialTable trial_table(const Definition& definition, std::span<const StudyTrial* const> trials,
                       Digits digits);

/// RFC 4180, with a line end after each row.
std::string csv_text(const TrialTable& table);
/// A table of GitHub's Markdown.
std::string markdown_text(const TrialTable& table);
/// {"number", "attempt", "state", "values": {metric: value}, "params": {...}, "reports": [[step, value],
/// ...], "origin", "started", "ended", "message"}; times in Unix seconds. With Definition::seeds also
/// "spread": {metric: value} and "seeds": {seed: {metric: value}}.
std::string json_object(const Definition& definition, const StudyTrial& trial);
/// A list of json_object().
std::string json_list(const Definition& definition, std::span<const StudyTrial* const> trials);
/// The trials with exact numbers: "csv", "json" or else Markdown.
std::string exported(const Definition& definition, std::span<const StudyTrial* const> trials,
                     std::string_view file_format);
/// The values of a point: {"lr": 0.1}.
std::string json_values(const Assignment& values);

}  // namespace stoker::sweep
