// Tables of a report with their sources, printed as text or HTML.
#pragma once

#include <string>
#include <vector>

#include "report/facts.h"

namespace stoker::report {

/// "command" → "python train.py", from "run.json".
struct ProvenanceRow {
  std::string key;
  std::string value;
  std::string source;
};

struct Column {
  std::string name;
  bool is_number = false;  ///< aligned to the right
  bool is_long = false;    ///< sentences: a separate line below the row on a phone; only the last column
};

struct Table {
  std::string title;
  std::string source;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Command, ranks, code, data and machine of the run.
std::vector<ProvenanceRow> provenance(const RunFacts& facts);
/// Shell lines; lines with '#' are comments.
std::vector<std::string> rerun_commands(const RunFacts& facts);

Table attempts_table(const RunFacts& facts);
/// Settings that changed between attempts; may have no rows.
Table changes_table(const RunFacts& facts);
Table epochs_table(const RunFacts& facts);
/// The last value of each metric and its range; no rows without logged metrics.
Table metrics_table(const RunFacts& facts);
/// Values of the whole run.
Table summary_table(const RunFacts& facts);
/// The images and the histograms that the program logged, by name.
Table images_table(const RunFacts& facts);
Table histograms_table(const RunFacts& facts);
Table time_table(const RunFacts& facts);
/// Use, clocks, throttling and errors of each GPU; no rows without samples of GPUs.
Table gpus_table(const RunFacts& facts);
Table checkpoints_table(const RunFacts& facts);
/// Milliseconds of each rank in the traced step, by phase; no rows without a trace.
Table traced_table(const RunFacts& facts);
/// The part of a trace phase; TimePart::other if unknown.
TimePart part_of(std::string_view phase);

}  // namespace stoker::report
