#include "preflight/placement.h"

#include <algorithm>

#include "base/process.h"
#include "job/site/storage_folder.h"
#include "loader/advice.h"
#include "stage/cache/dataset_folder.h"
#include "stage/cache/decision.h"
#include "stage/copy_forecast.h"
#include "stage/node.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

// The disk of a node that holds copies, and how much of it they may use.
struct NodeDisk {
  Path folder;
  ByteCount quota;  // 0: no limit but the disk
};

NodeDisk node_disk(const job::Job& job, const job::DataSource& source, const HostContext& host) {
  const Environment environment = current_environment();
  if (source.place == job::DataPlace::memory) return {"/dev/shm", {}};
  if (job.stage.directory) return {*job.stage.directory, {}};
  if (const Path named = variable(environment, "STOKER_CACHE"); !named.empty())
    return {nearest_existing(named), {}};
  if (host.site) {
    const Path folder = job::storage_folder(*host.site, "cache", environment);
    // The quota counts where this host does not have the folder, too.
    const ByteCount quota =
        folder.empty() ? ByteCount{} : host.site->storage.at("cache").quota.value_or(ByteCount{});
    return {folder_exists(folder) ? folder : stage::node_local_base({}, environment), quota};
  }
  return {stage::node_local_base({}, environment), {}};
}

Result<stage::PlaceDecision> forecast(const job::Job& job, const job::DataSource& source,
                                      const HostContext& host) {
  STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(source.source));
  const auto splits = source.split ? std::vector{*source.split} : std::vector<std::string>();
  STOKER_ASSIGN_OR_RETURN(shards, stage::cacheable_shards(opened, source.source, splits));
  const NodeDisk disk = node_disk(job, source, host);
  STOKER_ASSIGN_OR_RETURN(facts, stage::measure_facts(disk.folder, source.source, shards));
  if (disk.quota.value > 0) facts.disk_room = std::min(facts.disk_room, disk.quota.value);
  facts.epochs = job.train ? job.train->epochs : stage::kAssumedEpochs;
  facts.memory_room = loader::detect_machine("/", current_environment()).memory.value;
  return stage::decide_place(facts);
}

}  // namespace

void check_placement(const job::Job& job, const HostContext& host, Notes& notes) {
  const std::uint32_t nodes = std::max(1u, job.resources.nodes);
  for (const auto& [name, source] : job.data) {
    if (source.place == job::DataPlace::shared) continue;
    const auto decision = forecast(job, source, host);
    // A damaged dataset has a different finding; a folder that only nodes have cannot be measured here.
    if (!decision.ok()) continue;
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

void check_staged_files(const job::Job& job, Notes& notes) {
  std::vector<Path> sources;
  for (const std::string& path : job.stage.unpack) sources.emplace_back(path);
  for (const std::string& path : job.stage.copy) sources.emplace_back(path);
  if (sources.empty()) return;
  const stage::CopyForecast sum = stage::forecast_copy(sources);
  if (sum.files == 0) return;
  const std::string size = rounded({sum.bytes});
  const std::string count = grouped(sum.files);
  const std::uint32_t nodes = std::max(1u, job.resources.nodes);
  const bool is_broadcast = nodes > 1 && job.stage.broadcast;
  const Message all =
      !sum.is_whole  ? message("more than {}, more files than {}", size, count)
      : nodes == 1   ? message("{}, number of files {}: about {:.0f} s", size, count, sum.seconds)
      : is_broadcast ? message("{}, number of files {}: about {:.0f} s, {} nodes read them once", size, count,
                               sum.seconds, nodes)
                     : message("{}, number of files {}: about {:.0f} s, each of {} nodes reads them", size,
                               count, sum.seconds, nodes);
  notes.fact("staging", all);
}

}  // namespace stoker::preflight
