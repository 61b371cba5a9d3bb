// What the ranks' NCCL watchdogs printed about their positions, as states of collectives: which rank did not
// enter the one that its peers time out in. For failures without a flight recorder. Internal to this folder.
// Pure.
#pragma once

#include <vector>

#include "diagnose/failure.h"
#include "diagnose/suspect.h"

namespace stoker::diagnose {

/// One record per rank that differs from its peers. Empty if the logs have the positions of one rank only, or
/// if all ranks wait in the same collective.
std::vector<FailureRecord> watchdog_records(const std::vector<LogScan>& logs);

}  // namespace stoker::diagnose
