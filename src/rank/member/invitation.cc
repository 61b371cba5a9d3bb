#include "rank/member/invitation.h"

#include <algorithm>
#include <fcntl.h>

#include "base/process.h"
#include "rank/environment.h"
#include "slurm/allocation.h"

namespace stoker::rank {
namespace {

std::string value_of(std::string_view name) { return environment_value(std::string(name)).value_or(""); }

Result<Place> place_by_torchrun() {
  std::int64_t n[5] = {};
  const char* names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"};
  for (int i = 0; i < 5; ++i) {
    const std::string text = value_of(names[i]);
    if (!parse_number(text, &n[i]) || n[i] < 0 || n[i] > 1'000'000)
      return invalid("{}: '{}' is not what torchrun writes", names[i], printable(text));
  }
  return Place{Rank(static_cast<int>(n[0])), WorldSize(static_cast<int>(n[1])), static_cast<int>(n[2]),
               static_cast<int>(n[3]), static_cast<int>(n[4])};
}

// Which process of the run this is, by whatever started it.
Status find_place(Invitation& invitation) {
  const std::string place = value_of(kPlaceVariable);
  if (place == kPlaceByTorchrun) {
    OK_OR_RETURN(told, place_by_torchrun());
    invitation.place = told;
    invitation.role = Role::torchrun_rank;
    return {};
  }
  if (!place.empty()) {
    OK_OR_RETURN(told, parse_place(place));
    invitation.place = told;
    return {};
  }
  OK_OR_RETURN(task, slurm::current_task(slurm::process_environment()));
  if (!task) return invalid("rank: neither STOKER_PLACE nor SLURM_PROCID says which rank this is");
  invitation.place = {task->rank, task->world_size, task->local_rank, task->local_world_size, task->node};
  invitation.is_under_srun = true;
  return {};
}

}  // namespace

Result<Invitation> read_invitation() {
  Invitation invitation;
  invitation.world = value_of(kWorldVariable);
  if (invitation.world.empty()) {
    return invalid("rank: there is no run to join (STOKER_WORLD)")
        .cure("stoker run JOB, which starts the ranks");
  }
  RETURN_IF_ERROR(find_place(invitation));
  invitation.ranks_world = value_of(kRanksWorldVariable);
  if (!invitation.ranks_world.empty()) invitation.role = Role::node;
  std::int64_t seconds = 60;
  std::int64_t cpus = 0;
  std::int64_t sharing = 1;
  (void)parse_number(value_of(kStartVariable), &seconds);
  (void)parse_number(value_of(kCpusVariable), &cpus);
  (void)parse_number(value_of(kSharedGpuVariable), &sharing);
  invitation.start_limit = std::chrono::seconds(std::clamp<std::int64_t>(seconds, 1, 1'000'000));
  invitation.cpus = static_cast<int>(std::clamp<std::int64_t>(cpus, 0, 100'000));
  invitation.ranks_per_gpu = static_cast<int>(std::clamp<std::int64_t>(sharing, 1, 1024));
  invitation.ranks_of_node = value_of(kNodesVariable);
  invitation.attempt = value_of("STOKER_ATTEMPT_DIR");
  const bool is_below = invitation.role == Role::torchrun_rank && !value_of("SLURM_JOB_ID").empty();
  invitation.is_in_step = invitation.is_under_srun || is_below;
  if (invitation.is_in_step) invitation.step = value_of("SLURM_STEP_ID");
  return invitation;
}

Fd errors_of_the_run() {
  const std::string path = value_of(kErrorsVariable);
  return path.empty() ? Fd() : Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
}

}  // namespace stoker::rank
