#include "launch/start/claim_attempt.h"

#include "base/file.h"
#include "record/state.h"
#include "slurm/queue/job_table.h"
#include "stoker/time.h"

namespace stoker::launch {
namespace {

// Whether another process has started an attempt between the run's last known attempt and `own`. Checks by
// name, because a listing may miss another host's folder for a while.
bool was_overtaken(const Request& request, const record::Attempt& own) {
  const int first = request.last_known_attempt.value_or(own.number()) + 1;
  for (int number = first; number < own.number(); ++number) {
    if (folder_exists(own.folder().parent_path() / std::to_string(number))) return true;
  }
  return false;
}

// Concurrent attempts see all earlier ones: the first one continues.
Status abandon_attempt(const record::RunFolder& folder, const record::Attempt& own) {
  STOKER_RETURN_IF_ERROR(remove_tree(own.folder()));
  const double now = unix_seconds(RealClock().wall());
  STOKER_RETURN_IF_ERROR(check_resumable(folder, judge_life(read_recorded_status(folder, now), {}, now)));
  return invalid("run {}: another process has just resumed it", folder.id())
      .cure("stoker status {}", folder.id());
}

}  // namespace

Result<record::Attempt> claim_attempt(const Request& request, const record::RunFolder& folder,
                                      const std::string& scheduler_job, const std::string& yaml) {
  if (request.prepared) {
    const Status claimed = File::create_new(request.prepared->node_events(0)).status();
    if (claimed.ok()) return *request.prepared;
    if (claimed.code() != Code::exists) return claimed;
    const record::RunState state = record::derive_state(folder);
    if (state.state == record::State::done) return invalid("run {}: is done already", folder.id());
    // The scheduler requeues a job, or starts the next link of a chain, only after its processes are gone.
    const bool is_requeued = !scheduler_job.empty() &&
                             slurm::base_job_id(state.scheduler_job) == slurm::base_job_id(scheduler_job);
    if (state.state == record::State::running && !is_requeued)
      return invalid("run {}: is still running", folder.id()).cure("stoker logs -f {}", folder.id());
  }
  STOKER_ASSIGN_OR_RETURN(attempt, folder.start_attempt(yaml));
  if (was_overtaken(request, attempt)) return abandon_attempt(folder, attempt);
  return attempt;
}

}  // namespace stoker::launch
