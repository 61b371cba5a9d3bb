#include "launch/take_attempt.h"

#include "base/file.h"
#include "base/time.h"
#include "record/state.h"
#include "slurm/queue/job_table.h"

namespace stoker::launch {
namespace {

// Whether somebody has begun an attempt between the run's last one, as it was seen to be over, and `own`.
// Asked by name: another host's folder may be missing in a listing for a while.
bool was_overtaken(const Request& request, const record::Attempt& own) {
  const int first = request.last_seen.value_or(own.number()) + 1;
  for (int number = first; number < own.number(); ++number) {
    if (folder_exists(own.folder().parent_path() / std::to_string(number))) return true;
  }
  return false;
}

// Of several who take one, each sees those before its own: the first goes on.
Status give_way(const record::RunFolder& folder, const record::Attempt& own) {
  RETURN_IF_ERROR(remove_tree(own.folder()));
  const double now = unix_seconds(RealClock().wall());
  RETURN_IF_ERROR(check_can_go_on(folder, judge_life(own_word(folder, now), {}, now)));
  return invalid("run {}: somebody else went on with it just now", folder.id())
      .cure("stoker status {}", folder.id());
}

}  // namespace

Result<record::Attempt> take_attempt(const Request& request, const record::RunFolder& folder,
                                     const std::string& scheduler_job, const std::string& yaml) {
  if (request.prepared) {
    const Status claimed = File::create_new(request.prepared->node_events(0)).status();
    if (claimed.ok()) return *request.prepared;
    if (claimed.code() != Code::exists) return claimed;
    const record::RunState state = record::derive_state(folder);
    if (state.state == record::State::done) return invalid("run {}: is done already", folder.id());
    // The scheduler starts a job again, or the next link of a chain, only when its processes are gone.
    const bool is_requeued = !scheduler_job.empty() &&
                             slurm::submitted_job(state.scheduler_job) == slurm::submitted_job(scheduler_job);
    if (state.state == record::State::running && !is_requeued)
      return invalid("run {}: is still running", folder.id()).cure("stoker logs -f {}", folder.id());
  }
  OK_OR_RETURN(attempt, folder.start_attempt(yaml));
  if (was_overtaken(request, attempt)) return give_way(folder, attempt);
  return attempt;
}

}  // namespace stoker::launch
