// Site profiles: search paths, and the current cluster.
#pragma once

#include <vector>

#include "base/finding.h"
#include "base/language/translator.h"
#include "cli/output.h"
#include "job/job.h"
#include "job/site/find.h"
#include "job/site/site_check.h"

namespace stoker::cli {

/// The profile search paths of this executable.
Result<job::SiteSearchPath> site_profile_paths();

/// Finds a site by name; "auto" is the current cluster.
Result<job::FoundSite> find_site_by_name(std::string_view name);

/// The transfer node of the site of that host ("ada@login.cluster"); "" without one.
std::string transfer_node_for(const std::string& host);

/// Violations of the site's limits and advice; includes an unreadable profile. Empty with `site: none`.
std::vector<Finding> find_site_violations(const job::Job& job);

/// Returns violations of limits as an error and prints advice. Does nothing with `site: none`.
Status check_site_limits(const job::Job& job, Output& out);

/// The same for a batch script: `job` names the site, `request` has the script's resources.
Status check_script_site_limits(const job::Job& job, const job::SiteRequest& request, Output& out);

}  // namespace stoker::cli
