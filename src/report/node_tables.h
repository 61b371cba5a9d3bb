// Tables of a report about its nodes: their use, the energy, and what the run used of what it asked for.
#pragma once

#include "report/tables.h"

namespace stoker::report {

/// A row per node, then mean, lowest and highest with their node; with more than 16 nodes only the latter.
/// Columns without a value are left out. No rows without samples.
Table nodes_table(const RunFacts& facts);
/// The same with a row per quantity, for a terminal: a column per node of at most 4, then mean, lowest and
/// highest of several.
Table node_quantities_table(const RunFacts& facts);
/// What was used, what the job asked for, and the share; no rows without samples.
Table efficiency_table(const RunFacts& facts);
/// Energy by part with its source; no rows where nothing was measured.
Table energy_table(const RunFacts& facts);
/// What was staged before the ranks, a row per attempt; no rows where nothing was.
Table staging_table(const RunFacts& facts);
/// "3 GB on n2 of 8 GB" is share 0.375; nan if unknown.
double share_of(double used, double asked);

}  // namespace stoker::report
