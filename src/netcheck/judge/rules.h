// The rules of judge(), by subject. Internal to this folder. Pure.
#pragma once

#include <set>

#include "netcheck/report.h"
#include "netcheck/reported_message.h"

namespace stoker::netcheck {

/// Ranks that did not join, or were lost.
void judge_presence(const Report& report, std::vector<Finding>* findings);
/// Cores and GPUs.
void judge_placement(const Report& report, std::vector<Finding>* findings);
/// Names, interfaces and the variables that choose them, fabric, MASTER_PORT.
void judge_settings(const Report& report, std::vector<Finding>* findings);
/// Paths, local disks, clocks.
void judge_storage(const Report& report, std::vector<Finding>* findings);
/// Failed and slow connections.
void judge_connections_and_speed(const Report& report, std::vector<Finding>* findings);

/// "n1, n2 and 4 more".
Message names_of(const std::set<std::string>& hosts);
/// The host of a rank, for users; "rank 3" on a single host.
std::string host_of(const Report& report, Rank rank);
/// That host as part of a message.
Message host_text(const std::string& host);
Message host_text(const Report& report, Rank rank);
/// The setting that excludes these hosts from a job; "" outside Slurm.
std::string exclusion(const Report& report, const std::set<std::string>& hosts);
/// The setting that sets a variable for all ranks.
std::string setting(std::string_view variable, std::string_view value);
/// The interface that connects the hosts, if known; or "".
std::string common_interface(const Report& report);

}  // namespace stoker::netcheck
