#include "rank/member/invitation.h"

#include <algorithm>

#include "base/process.h"
#include "rank/environment.h"
#include "slurm/allocation.h"

namespace stoker::rank {

Result<Invitation> read_invitation() {
  Invitation invitation;
  invitation.world = environment_value(std::string(kWorldVariable)).value_or("");
  if (invitation.world.empty()) {
    return invalid("rank: there is no run to join (STOKER_WORLD)")
        .cure("stoker run JOB, which starts the ranks");
  }
  if (const auto place = environment_value(std::string(kPlaceVariable))) {
    OK_OR_RETURN(parsed, parse_place(*place));
    invitation.place = parsed;
  } else {
    OK_OR_RETURN(task, slurm::current_task(slurm::process_environment()));
    if (!task) return invalid("rank: neither STOKER_PLACE nor SLURM_PROCID says which rank this is");
    invitation.place = {task->rank, task->world_size, task->local_rank, task->local_world_size, task->node};
    invitation.is_under_srun = true;
  }
  std::int64_t seconds = 60;
  std::int64_t cpus = 0;
  (void)parse_number(environment_value(std::string(kStartVariable)).value_or(""), &seconds);
  (void)parse_number(environment_value(std::string(kCpusVariable)).value_or(""), &cpus);
  invitation.start_limit = std::chrono::seconds(std::clamp<std::int64_t>(seconds, 1, 1'000'000));
  invitation.cpus = static_cast<int>(std::clamp<std::int64_t>(cpus, 0, 100'000));
  invitation.attempt = environment_value("STOKER_ATTEMPT_DIR").value_or("");
  return invitation;
}

}  // namespace stoker::rank
