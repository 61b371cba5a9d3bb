// Is a job fit for production: thirteen questions that sites and reviewers ask, each answered yes, no or not
// measurable, with what shows it and what would change it. From the job, its runs' records and its data's
// manifests. Used by `stoker check JOB --production`. Looks, changes nothing. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language/words.h"
#include "job/job.h"
#include "job/site/site.h"

namespace stoker::explain {

enum class Answer { yes, no, not_measurable };
/// "yes", "no", "not measurable".
std::string_view to_text(Answer answer);

struct ProductionPoint {
  std::string_view name;  ///< stable: "data-sharded"
  std::string_view question;
  Answer answer = Answer::not_measurable;
  std::vector<std::string> evidence;  ///< a line each, with the file that shows it
  std::string cure;                   ///< a command or setting; empty with yes
};

/// In the order of the list. `site`: the cluster, when it is known; `now` in Unix seconds.
std::vector<ProductionPoint> production_points(const job::Job& job, const std::optional<job::Site>& site,
                                               double now, const Words& words = Words());

}  // namespace stoker::explain
