// What the commands about sites share: where profiles lie, and which cluster this is.
#pragma once

#include <vector>

#include "base/finding.h"
#include "base/language/words.h"
#include "cli/output.h"
#include "job/job.h"
#include "job/site/find.h"
#include "job/site/judge.h"

namespace stoker::cli {

/// The places of profiles for this executable.
Result<job::SitePlaces> own_site_places();

/// The site of that name, "auto" for the one that is here.
Result<job::FoundSite> site_named(std::string_view name);

/// What the job's site does not allow or advises against; a site that cannot be read is one, too. Nothing
/// with `site: none`.
std::vector<Finding> find_site_objections(const job::Job& job, const Words& words = Words());

/// What the job's site does not allow ends here, with an error; what it advises against is told. With `site:
/// none` nothing is looked at.
Status check_with_site(const job::Job& job, Output& out);

/// The same for a batch script: `job` names the site, `request` is what the script asks for.
Status check_script_with_site(const job::Job& job, const job::SiteRequest& request, Output& out);

}  // namespace stoker::cli
