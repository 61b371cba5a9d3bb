// The nodes and GPUs of a run in their last samples, as text for people. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "observe/live.h"

namespace stoker::observe {

/// "3.1 of 16" cores, "4.2 GB/s", "93 %"; "-" for an unset or impossible value.
std::string measure_text(const NodeMeasure& measure, const std::optional<double>& value);
/// "n2"; "node 1" if the host is unknown.
std::string node_name(const LiveNode& node);

/// Columns without any value are left out. With more than 16 nodes: their mean, and the lowest and highest
/// value with its node.
struct NodeRows {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
NodeRows rows_of(const std::vector<LiveNode>& nodes);

/// Why the GPU runs below its clock; "power limit", ...
std::vector<std::string> throttling_of(const LiveGpu& gpu);
/// A line per GPU. With more than 16 GPUs, only GPUs with an error, or slowed down by more than their power
/// limit, and the number of the remaining ones.
std::vector<std::string> gpu_lines(const LiveRun& live);

}  // namespace stoker::observe
