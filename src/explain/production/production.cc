#include "explain/production/production.h"

#include "explain/production/history.h"

namespace stoker::explain {

std::string_view to_text(Answer answer) {
  return answer == Answer::yes ? "yes" : answer == Answer::no ? "no" : "not measurable";
}

std::vector<ProductionPoint> production_points(const job::Job& job, const std::optional<job::Site>& site,
                                               double now, const Words& words) {
  const ProductionFacts facts = look_at_history(job, site, now, words);
  return {data_sharded(facts),       use_measured(facts),     checkpoints_placed(facts),
          cache_purged(facts),       data_hashed(facts),      all_reduced(facts),
          nccl_quiet(facts),         interface_chosen(facts), scaling_documented(facts),
          environment_frozen(facts), data_of_run(facts),      runs_tracked(facts),
          baseline_versioned(facts)};
}

}  // namespace stoker::explain
