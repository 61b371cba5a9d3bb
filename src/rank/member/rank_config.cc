#include "rank/member/rank_config.h"

#include <algorithm>
#include <fcntl.h>

#include "base/process.h"
#include "rank/environment.h"
#include "slurm/allocation.h"

namespace stoker::rank {
namespace {

std::string value_of(std::string_view name) { return environment_value(std::string(name)).value_or(""); }

Result<RankPlacement> torchrun_placement() {
  std::int64_t n[5] = {};
  const char* names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"};
  for (int i = 0; i < 5; ++i) {
    const std::string text = value_of(names[i]);
    if (!parse_number(text, &n[i]) || n[i] < 0 || n[i] > 1'000'000)
      return invalid("{}: '{}' is not a value of torchrun", names[i], printable(text));
  }
  return RankPlacement{Rank(static_cast<int>(n[0])), WorldSize(static_cast<int>(n[1])),
                       static_cast<int>(n[2]), static_cast<int>(n[3]), static_cast<int>(n[4])};
}

// Determines the placement of this process from its launcher.
Status find_placement(RankConfig& config) {
  const std::string place = value_of(kPlaceVariable);
  if (place == kPlaceByTorchrun) {
    STOKER_ASSIGN_OR_RETURN(placement, torchrun_placement());
    config.place = placement;
    config.role = Role::torchrun_rank;
    return {};
  }
  if (!place.empty()) {
    STOKER_ASSIGN_OR_RETURN(placement, parse_placement(place));
    config.place = placement;
    return {};
  }
  STOKER_ASSIGN_OR_RETURN(task, slurm::current_task(slurm::process_environment()));
  if (!task) return invalid("rank: no rank number (STOKER_PLACE or SLURM_PROCID)");
  config.place = {task->rank, task->world_size, task->local_rank, task->local_world_size, task->node};
  config.is_under_srun = true;
  return {};
}

}  // namespace

Result<RankConfig> read_rank_config() {
  RankConfig config;
  config.world = value_of(kWorldVariable);
  if (config.world.empty()) {
    return invalid("rank: there is no run to join (STOKER_WORLD)")
        .cure("stoker run JOB      (starts the ranks)");
  }
  STOKER_RETURN_IF_ERROR(find_placement(config));
  config.ranks_world = value_of(kRanksWorldVariable);
  if (!config.ranks_world.empty()) config.role = Role::node;
  std::int64_t seconds = 60;
  std::int64_t cpus = 0;
  std::int64_t gpus = 0;
  std::int64_t sharing = 1;
  (void)parse_number(value_of(kStartVariable), &seconds);
  (void)parse_number(value_of(kCpusVariable), &cpus);
  (void)parse_number(value_of(kOwnGpusVariable), &gpus);
  (void)parse_number(value_of(kSharedGpuVariable), &sharing);
  config.start_limit = std::chrono::seconds(std::clamp<std::int64_t>(seconds, 1, 1'000'000));
  config.cpus = static_cast<int>(std::clamp<std::int64_t>(cpus, 0, 100'000));
  config.gpus_per_rank = static_cast<int>(std::clamp<std::int64_t>(gpus, 0, 1024));
  config.ranks_per_gpu = static_cast<int>(std::clamp<std::int64_t>(sharing, 1, 1024));
  config.ranks_of_node = value_of(kNodesVariable);
  config.attempt = value_of("STOKER_ATTEMPT_DIR");
  config.metrics_from = config.role == Role::node ? "none" : value_of(kMetricsVariable);
  const bool is_below = config.role == Role::torchrun_rank && !value_of("SLURM_JOB_ID").empty();
  config.is_in_step = config.is_under_srun || is_below;
  if (config.is_in_step) config.step = value_of("SLURM_STEP_ID");
  return config;
}

Fd open_run_stderr() {
  const std::string path = value_of(kErrorsVariable);
  return path.empty() ? Fd() : Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
}

}  // namespace stoker::rank
