#include "preflight/production/production.h"

#include "preflight/production/data_points.h"
#include "preflight/production/history.h"
#include "preflight/production/network_points.h"
#include "preflight/production/run_points.h"

namespace stoker::preflight {

std::string_view to_text(PointAnswer answer) {
  return answer == PointAnswer::yes ? "yes" : answer == PointAnswer::no ? "no" : "not measurable";
}

std::vector<ProductionPoint> production_points(const job::Job& job, const std::optional<job::Site>& site,
                                               double now) {
  const ProductionFacts facts = collect_facts(job, site, now);
  return {data_sharded(facts),       usage_measured(facts),   checkpoints_placed(facts),
          stage_cleaned(facts),      data_hashed(facts),      all_reduced(facts),
          nccl_quiet(facts),         interface_chosen(facts), scaling_documented(facts),
          environment_frozen(facts), data_of_run(facts),      runs_tracked(facts),
          baseline_versioned(facts)};
}

}  // namespace stoker::preflight
