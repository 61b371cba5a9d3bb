// Several runs, or the tasks of an array, beside each other: what distinguishes them, their results and their
// curves. Pure functions of facts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/facts.h"
#include "report/results.h"
#include "report/tables.h"

namespace stoker::report {

/// One run or task.
struct OverviewRow {
  std::string name;                   ///< "resnet20 k7q2", "task 3"
  std::vector<std::string> settings;  ///< by Overview::settings; "" if it has none
  std::string state;
  std::string reason;           ///< of its end; may be ""
  double seconds = 0;           ///< running time
  std::vector<double> results;  ///< by Overview::results; nan if it has none
  std::vector<Series> curves;   ///< by Overview::curves, over steps; without points if it has none
};

struct OverviewResult {
  std::string name;
  Better better = Better::unknown;
};

/// The rows are sorted by the first result, best first; rows without it follow, in their given order.
struct Overview {
  std::string what;                     ///< "run" or "task"
  std::vector<std::string> settings;    ///< that differ, in job file order
  std::vector<OverviewResult> results;  ///< the first decides the order
  std::vector<std::string> curves;      ///< names
  std::vector<OverviewRow> rows;
};

/// Curves over steps: of the trainer, then of logged metrics.
std::vector<Series> curves_of_run(const RunFacts& run);

/// Of several runs.
Overview overview_of_runs(std::span<const RunFacts> runs);
/// Of the tasks of an array.
Overview overview_of_tasks(const RunFacts& array);

/// "12 runs: 10 done, 1 failed, 1 running".
std::string count_text(const Overview& overview);
/// At most `most` rows, the first ones.
Table overview_table(const Overview& overview, std::size_t most);

}  // namespace stoker::report
