// The parts of a report as rows of text with the place each came from: what the text form prints and the HTML
// form typesets.
#pragma once

#include <string>
#include <vector>

#include "report/facts.h"
#include "report/report.h"

namespace stoker::report {

/// "command" → "python train.py", from "run.json".
struct Fact {
  std::string key;
  std::string value;
  std::string source;
};

struct Column {
  std::string name;
  bool is_number = false;  ///< aligned to the right
  bool is_long = false;    ///< sentences: on a phone a line of its own below the row; only the last column
};

struct Table {
  std::string title;
  std::string source;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// "done", "failed with exit code 7", ...
std::string state_text(const RunFacts& facts);

std::vector<Fact> what_ran(const RunFacts& facts);
/// Shell lines; those that begin with '#' explain.
std::vector<std::string> run_again(const RunFacts& facts);

Table attempts_table(const RunFacts& facts);
/// Settings that an attempt had otherwise than the one before; no rows when there are none.
Table changes_table(const RunFacts& facts);
Table epochs_table(const RunFacts& facts);
Table time_table(const RunFacts& facts);
Table checkpoints_table(const RunFacts& facts);
/// Milliseconds of each rank in the traced step, by phase; no rows when none was traced.
Table traced_table(const RunFacts& facts);
/// The part of a step that a phase of the trace is: Part::other when it is none.
Part part_of(std::string_view phase);

/// "61.2 %", "-" for what is no number.
std::string percent(double fraction);
/// Three or four significant digits: "0.0123", "1.85", "1 204"; "-" for what is no number.
std::string significant(double value);
/// "2 min 11 s".
std::string seconds_text(double seconds);

}  // namespace stoker::report
