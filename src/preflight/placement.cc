#include "preflight/placement.h"

#include <algorithm>

#include "base/process.h"
#include "loader/advice.h"
#include "stage/cache/dataset_folder.h"
#include "stage/cache/decision.h"
#include "stage/node.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

Result<stage::PlaceDecision> forecast(const job::Job& job, const job::DataSource& source) {
  const Environment environment = current_environment();
  STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(source.source));
  const auto splits = source.split ? std::vector{*source.split} : std::vector<std::string>();
  STOKER_ASSIGN_OR_RETURN(shards, stage::cacheable_shards(opened, source.source, splits));
  const Path folder = source.place == job::DataPlace::memory
                          ? Path("/dev/shm")
                          : stage::node_local_base(job.stage.directory.value_or(Path()), environment);
  STOKER_ASSIGN_OR_RETURN(facts, stage::measure_facts(folder, source.source, shards));
  facts.epochs = job.train ? job.train->epochs : stage::kAssumedEpochs;
  facts.memory_room = loader::detect_machine("/", environment).memory.value;
  return stage::decide_place(facts);
}

}  // namespace

void check_placement(const job::Job& job, Notes& notes) {
  for (const auto& [name, source] : job.data) {
    if (source.place == job::DataPlace::shared) continue;
    const auto decision = forecast(job, source);
    // A damaged dataset has a different finding; a folder that only nodes have cannot be measured here.
    if (!decision.ok()) continue;
    const std::uint32_t nodes = std::max(1u, job.resources.nodes);
    const bool is_broadcast = nodes > 1 && job.stage.broadcast;
    const Message each = nodes == 1 ? message("{}: staging takes about {:.0f} s", name, decision->staging_s)
                         : is_broadcast
                             ? message("{}: staging takes about {:.0f} s, {} nodes read it once", name,
                                       decision->staging_s, nodes)
                             : message("{}: staging takes about {:.0f} s, each of {} nodes reads it", name,
                                       decision->staging_s, nodes);
    notes.fact("place", each);
    if (decision->is_copied) continue;
    notes.found("copy-gains-nothing", Level::time, format("data.{}.place", name),
                message("a copy does not pay as far as this host can tell: {}", decision->reason),
                format("data: {{{}: {{place: shared}}}}", name));
  }
}

}  // namespace stoker::preflight
