#include "report/samples/samples.h"

#include "record/metrics.h"
#include "report/samples/charts.h"
#include "report/samples/gpus.h"
#include "report/samples/nodes.h"
#include "report/samples/staging.h"

namespace stoker::report {

void read_samples(const std::vector<AttemptSource>& attempts, RunFacts& facts) {
  SystemCharts charts;
  GpuTable gpus;
  NodeTable nodes;
  for (const AttemptSource& source : attempts) {
    const std::vector<int> numbers = source.attempt.sampled_nodes();
    for (const int node : numbers) {
      const Path file = source.attempt.system(node);
      const auto table = record::read_metrics(file);
      if (!table) {
        facts.notes.emplace_back(table.error().message());
        continue;
      }
      note_damage(facts, file, table->damaged, table->truncated);
      charts.add(source, *table, node, numbers.size() > 1);
      gpus.add_samples(*table, node);
      nodes.add_samples(*table, node);
    }
    if (const auto log = record::read_attempt_events(source.attempt.folder())) {
      gpus.add_events(*log);
      nodes.add_events(*log);
      add_staging(source.attempt.number(), *log, facts);
    }
  }
  facts.system = charts.finish();
  facts.gpus = gpus.finish();
  facts.nodes = nodes.finish();
  if (!facts.nodes.empty()) facts.efficiency = efficiency_of(facts, attempts.back());
}

}  // namespace stoker::report
