#include "cli/run_facts.h"

#include "cli/runs.h"
#include "launch/status/life.h"

namespace stoker::cli {

std::vector<report::RunFacts> collect_judged_facts(const std::vector<record::RunFolder>& runs) {
  auto scheduler = make_scheduler();
  const auto lives = launch::query_life(runs, scheduler, Deadline::after(kSchedulerTimeout));
  std::vector<report::RunFacts> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const launch::RunLife& life = lives[i];
    all.push_back(report::collect_run_facts(
        runs[i], {},
        report::JudgedState{std::string(to_text(life.life)), life.note, is_over(life.life), life.records}));
  }
  return all;
}

}  // namespace stoker::cli
