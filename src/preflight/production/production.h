// Checks whether a job is ready for production: thirteen questions of sites and reviewers, answered yes, no
// or not measurable, each with evidence and a cure. Uses the job, its past runs and the manifests of its
// data. Used by `stoker check JOB --production`. Read-only. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language/message.h"
#include "job/job.h"
#include "job/site/site.h"

namespace stoker::preflight {

enum class PointAnswer { yes, no, not_measurable };
/// "yes", "no", "not measurable".
std::string_view to_text(PointAnswer answer);

struct ProductionPoint {
  std::string_view name;  ///< stable: "data-sharded"
  std::string_view question;
  PointAnswer answer = PointAnswer::not_measurable;
  std::vector<Message> evidence;  ///< one line each, with the file as evidence
  Message cure;                   ///< a command or setting; empty with yes
};

/// In the order of the list. `site`: the cluster, if known; `now` in Unix seconds.
std::vector<ProductionPoint> production_points(const job::Job& job, const std::optional<job::Site>& site,
                                               double now);

}  // namespace stoker::preflight
