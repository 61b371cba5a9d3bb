// The rules behind judge(), by what they look at. Internal to this folder. Pure.
#pragma once

#include <set>

#include "rank/hello/report.h"
#include "rank/hello/said.h"

namespace stoker::rank::hello {

/// Who did not come, or left.
void judge_attendance(const Report& report, std::vector<Finding>* findings);
/// Cores and GPUs.
void judge_places(const Report& report, std::vector<Finding>* findings);
/// Names, interfaces and the variables that choose them, fabric, MASTER_PORT.
void judge_settings(const Report& report, std::vector<Finding>* findings);
/// Paths, the nodes' own disks, clocks.
void judge_storage(const Report& report, std::vector<Finding>* findings);
/// Ways that fail, and slow ones.
void judge_ways(const Report& report, std::vector<Finding>* findings);

/// "n1, n2 and 4 more".
std::string names_of(const std::set<std::string>& hosts, const Words& words);
/// The host of a rank, for people.
std::string host_of(const Report& report, Rank rank);
/// The line that keeps these hosts out of a job; "" outside Slurm.
std::string exclusion(const Report& report, const std::set<std::string>& hosts);
/// The line that sets a variable for all ranks.
std::string setting(std::string_view variable, std::string_view value);
/// The interface by which the hosts reach each other, as far as is known; or "".
std::string common_interface(const Report& report);

}  // namespace stoker::rank::hello
